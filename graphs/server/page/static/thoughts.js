// What follows a model's thoughts: memory/text.py, after_thoughts, for what a browser reads by itself.

const TAG = "(?:think(?:ing)?|thought)>";
const THOUGHT = new RegExp(
  "```[^]*?(?:```|$)|`[^`\\n]*`|(?<begins>(?:^|[.!?\\u2026\\u3002\\uff01\\uff1f])\\s*|(?<line>\\n[ \\t]*))?" +
    `(?<tag><(?<closes>/?)${TAG})\\s*`,
  "giu",
);
const ENDS_ITS_LINE = /^[ \t]*(?:\n|$)|^[\p{L}\p{N}_\[{]|^```/u;
const END = new RegExp(`</${TAG}\\s*`, "gi");

export function afterThoughts(said) {
  let kept = "", at = 0, mayBeSwallowed = true;
  for (const mark of said.matchAll(THOUGHT)) {
    const { tag, closes, begins, line } = mark.groups;
    const place = mark.index + (begins ?? "").length;
    if (!tag || place < at) continue;
    if (closes) {
      if (mayBeSwallowed && (begins !== undefined || ENDS_ITS_LINE.test(said.slice(place + tag.length)))) at = mark.index + mark[0].length;
    } else if (place === at || (begins !== undefined && line === undefined)) {
      END.lastIndex = place;
      const end = END.exec(said);
      if (!end && said.slice(0, place).trim()) break;
      kept += said.slice(at, place);
      at = end ? END.lastIndex : said.length;
    }
    mayBeSwallowed = false;
  }
  return at ? (kept + said.slice(at)).trimStart() : said;
}
