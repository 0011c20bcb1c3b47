"""What a summary call is sent: plain text, in portions of what is sent and not of what was there."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory.context.summary_prompt import in_portions
from tests.summarizing import human
from tests.threads import word_counter, words

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def image(name: str) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": name}, IMAGE], id=name)


def texts(*messages: BaseMessage, limit: int = 100) -> list[list[str]]:
    return [[message.text for message in portion] for portion in in_portions(messages, limit, word_counter())]


def test_what_is_sent_of_an_image_is_counted_and_not_the_image() -> None:
    assert word_counter().message(image("h1")) > 100
    assert texts(image("h1"), image("h2")) == [["h1\n[image]", "h2\n[image]"]]


def test_a_tool_call_is_written_out_in_letters_that_a_small_model_reads() -> None:
    call = {"name": "look", "args": {"at": "Ålesund 東京 \ud800"}, "id": "c1"}
    found = texts(AIMessage("", id="a1", tool_calls=[call]), ToolMessage("rain", tool_call_id="c1", name="look"))
    assert found == [['[calls look({"at": "Ålesund 東京 "})]', "[result of look] rain"]]


def test_no_portion_is_longer_than_its_limit() -> None:
    call = {"name": "write", "args": {"text": words(300)}, "id": "c1"}
    said = [human("h1", 300), AIMessage("", id="a1", tool_calls=[call]), human("h2", 60), human("h3", 60)]
    counter = word_counter()
    found = list(in_portions(said, 100, counter))
    assert [[message.id for message in portion] for portion in found] == [["h1"], ["a1"], ["h2"], ["h3"]]
    assert all(counter(portion) <= 100 for portion in found)


def test_each_speaker_stays_who_it_was() -> None:
    said = [HumanMessage("a"), SystemMessage("b"), AIMessage("c"), ToolMessage("d", tool_call_id="c1")]
    (portion,) = in_portions(said, 100, word_counter())
    assert [message.type for message in portion] == ["human", "system", "ai", "ai"]
