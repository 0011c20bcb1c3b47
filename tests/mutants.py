"""Breaks one promise at a time, in a copy of the project, and expects a law, a rule or a story to notice.

`python -m tests.mutants` prints a table, which test notices which broken promise, and fails if one is not
noticed; names of mutants, or parts of them, choose some.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ROOMS = ("graphs", "memory", "palimpsest", "tests", "pyproject.toml")
PROMISES, UPDATES = "tests/laws/test_rules_promises.py", "tests/laws/test_rules_updates.py"
QUEUE = "tests/laws/test_rules_queue.py"
NO_SUCH_FILE, NO_TESTS = 4, 5  # pytest's exit codes
AGENTS = "tests/laws/test_rules_agents.py"
SPEAKERS = "tests/laws/test_rules_speakers.py"
FACTS = "tests/laws/test_rules_facts.py"
BUDGET = "tests/laws/test_rules_budget.py"
ERASED_THREADS = "tests/laws/test_rules_erased.py"
OVERLOOKED = "tests/rules/test_overlooked.py"
LEFT = ("tests/laws/test_rules_left.py",)
BRANCHES = "tests/laws/test_rules_branches.py"
EDITED = "tests/laws/test_rules_edited.py"
HANDS = "tests/laws/test_rules_by_hand.py"
FAILING = "tests/laws/test_rules_failing.py"
KEEP, AGENT, BELOW = (
    f"tests/laws/test_rules_threads.py::test_a_thread_goes_on_whatever_stands_in_it[{door}]"
    for door in ("keep", "agent", "below")
)


def matrix(cell: str) -> str:
    """Return the test of an operation that is interrupted, by the names of both."""
    return f"tests/laws/test_matrix.py::test_laws_hold_at_every_place[{cell}-memory]"


@dataclass(frozen=True)
class Mutant:
    """One broken promise: in `file`, `old` becomes `new`, and one of `tests` has to fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "a secret comes back by an echo in a later turn",
        "memory/screening/values.py",
        "lengths = frozenset(digests.values())",
        "lengths = frozenset[int]()",
        ("tests/laws/test_rules_secrets.py",),
    ),
    Mutant(
        "an erase of everything leaves the digests of secrets",
        "memory/forget/erase.py",
        "erased_at={}, secrets=NO_SECRETS,",
        "erased_at={},",
        ("tests/laws/test_rules_secrets.py",),
    ),
    Mutant(
        "an import that is given again is learned again",
        "memory/backfill/source.py",
        "new = ids - talk.known - ",
        "new = ids - ",
        (HANDS,),
    ),
    Mutant(
        "what waits of an import outlives it",
        "memory/backfill/source.py",
        "outbox.rewrite(owner, lambda entry: entry if not is_gone(entry.thread_id) else None)",
        "outbox.rewrite(owner, lambda entry: entry)",
        (matrix("erase source-none"),),
    ),
    Mutant(
        "what an import had replaced does not come back",
        "memory/facts/rules.py",
        "is_free = left.issuperset(heirs) if heirs else",
        "is_free = False if heirs else",
        (PROMISES,),
    ),
    Mutant(
        "what an import had ended does not come back",
        "memory/facts/rules.py",
        'fact.status == "ended" and is_undone(fact.ended_by)',
        "False",
        (PROMISES,),
    ),
    Mutant(
        "what is kept of an overlooked sentence hides an order beside it",
        "graphs/local/notes/overlooked.py",
        "if told.startswith((WISH, _OPINION)) and is_held:",
        "if False:",
        (OVERLOOKED,),
    ),
    Mutant(
        "an overlooked sentence is kept although a note tells it",
        "graphs/local/notes/overlooked.py",
        "(is_told and not _lacks_detail(telling, part))",
        "False",
        (OVERLOOKED,),
    ),
    Mutant(
        "a note that says less than its sentence stays beside it",
        "graphs/local/notes/overlooked.py",
        "if note not in telling or not words(note) <= words(told)]",
        "]",
        (OVERLOOKED,),
    ),
    Mutant(
        "what waits for a yes is used at once",
        "memory/facts/fact_set.py",
        'if fact.status == "active"]',
        'if fact.status in ("active", "waiting")]',
        (FACTS,),
    ),
    Mutant(
        "what is sensitive does not wait",
        "memory/facts/applying.py",
        'if not known and (self._approval == "all" or',
        "if not known and (False and",
        (FACTS,),
    ),
    Mutant(
        "a conversation or a tool may say yes",
        "memory/facts/rules.py",
        "if source not in BY_HAND:",
        "if not source:",
        (FACTS,),
    ),
    Mutant(
        "a model brings back what its user wants to be asked about",
        "graphs/tools_of_memory.py",
        '    if stricter(call.config.approval, call.control.approval) != "off":',
        "    if False:",
        (FACTS,),
    ),
    Mutant(
        "what the assistant said in a few words counts half",
        "memory/recall/index.py",
        "if each.is_reply and lengths[at] > _LONG_REPLY",
        "if each.is_reply",
        ("tests/rules/test_recall.py",),
    ),
    Mutant(
        "a question within a long message is not heard",
        "memory/recall/user_index.py",
        "said = parts(asked.text[:MOST_CHARS])",
        "said = [asked.text[:MOST_CHARS]]",
        ("tests/rules/test_recalled_turns.py",),
    ),
    Mutant(
        "a message about nothing known recalls something as the first of a thread",
        "memory/injection/selection.py",
        "fitting = relevant(recalled.hits, LEAST_SHARE) if is_about else ()",
        "fitting = relevant(recalled.hits, LEAST_SHARE)",
        ("tests/rules/test_recalled_turns.py", "tests/rules/test_selection.py"),
    ),
    Mutant(
        "a thread that begins with thanks carries all of memory",
        "memory/injection/selection.py",
        "left.budget if is_about else QUIET_TOKENS",
        "left.budget",
        ("tests/rules/test_selection.py",),
    ),
    Mutant(
        "one word in common is what a message is about",
        "memory/recall/index.py",
        "covered = [share * count for",
        "covered = [share for",
        ("tests/rules/test_recall.py",),
    ),
    Mutant(
        "the journal tells what waits for a yes",
        "memory/recall/past.py",
        "(*filter(facts.is_deleted, facts.past), *waiting))",
        "filter(facts.is_deleted, facts.past))",
        (FACTS,),
    ),
    Mutant(
        "a message that waits, and no fact was made of, is told",
        "memory/recall/past.py",
        "entry.without(each.gone | each.waiting)",
        "entry.without(each.gone)",
        (FACTS,),
    ),
    Mutant(
        "a yes to a fact is one to all that its message tells",
        "memory/recall/past.py",
        "words(one.text) <= told.get(place, frozenset())",
        "told.get(place, frozenset())",
        (FACTS,),
    ),
    Mutant(
        "what waits is sent to an embedder",
        "memory/recall/vectors.py",
        "journal = await read_past(owner)",
        "journal = await __import__('memory.journal.journal', fromlist=['x']).read_journal(owner)",
        (FACTS,),
    ),
    Mutant(
        "the same words written down again lose that they wait",
        "memory/journal/entry.py",
        "(self.held if each in stays else other.held)",
        "other.held",
        (FACTS,),
    ),
    Mutant(
        "a worker that dies between two portions takes the mark of an order along",
        "memory/updates/transcript.py",
        'new |= {flush_hash("order", one.text): None',
        '_ = {flush_hash("order", one.text): None',
        ("tests/laws/test_rules_orders.py",),
    ),
    Mutant(
        "a fact that a person lets in at a full memory goes at once",
        "memory/facts/rules.py",
        "facts.limit(fresh={free.id})",
        "facts.limit()",
        (FACTS,),
    ),
    Mutant(
        "a process forgets what another one used of a budget",
        "memory/updates/budget.py",
        "        return ends\n    await",
        "        return ends\n    spent = 0\n    await",
        (BUDGET,),
    ),
    Mutant(
        "a restart begins a budget anew",
        "memory/updates/budget.py",
        "spent = await read_spent(owner, day)",
        "spent = 0",
        (BUDGET,),
    ),
    Mutant(
        "an old thread takes along what memory learned of it",
        "graphs/server/deletions.py",
        " and not by_retention.get()",
        "",
        ("tests/laws/test_rules_files.py",),
    ),
    Mutant(
        "an agent's question waits for the answer before it is written down",
        "graphs/middleware/memory.py",
        "if not is_written and not _is_new(thread)",
        "if False and not _is_new(thread)",
        (AGENTS,),
    ),
    Mutant(
        "an agent's question that could not be written down is named by nothing until the turn ends",
        "graphs/middleware/memory.py",
        "named((*thread.unwritten, *now))",
        "named(thread.unwritten)",
        LEFT,
    ),
    Mutant(
        "what a guard refused is learned with the next turn",
        "graphs/middleware/asked.py",
        "return [question for question in marked if question.id in _message_ids(before).difference(was_asked)]",
        "return []",
        ("tests/laws/test_rules_guards.py",),
    ),
    Mutant(
        "a guard's answer is taken for the model's",
        "graphs/middleware/memory.py",
        "if thread.asked and answered != thread.asked:",
        "if not thread.asked:",
        ("tests/laws/test_rules_guards.py",),
    ),
    Mutant(
        "a look at checkpoints writes down what a guard refused",
        "graphs/server/unwritten.py",
        "        del said[questions[-1] :]\n",
        "        pass\n",
        ("tests/laws/test_rules_guards.py",),
    ),
    Mutant(
        "a look at checkpoints ends with its first page",
        "graphs/server/unwritten.py",
        "    while found := await checkpoints.unwritten(page, after=newest_read):\n",
        "    if found := await checkpoints.unwritten(page, after=newest_read):\n",
        LEFT,
    ),
    Mutant(
        "a look at checkpoints reads the chat graph's state only",
        "graphs/server/unwritten.py",
        "    for kept in state_of(values.get(MEMORY_KEY)).values():\n",
        "    for kept in ():\n",
        LEFT,
    ),
    Mutant(
        "a summary that was prepared in incognito goes on into other turns",
        "graphs/turn/prepared.py",
        "thread.epochs.thread_epoch, is_closed, *of)",
        "thread.epochs.thread_epoch, *of)",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "what a model tells a subagent is learned",
        "graphs/turn/run.py",
        'if is_called or self._configurable.get("ls_agent_type") == "subagent":',
        "if False:",
        (AGENTS, SPEAKERS),
    ),
    Mutant(
        "what anybody in a thread says is a fact of the user",
        "memory/message.py",
        'return "user" if not name or _same(name) in ("", _same(speaker)) else "other"',
        'return "user"',
        (SPEAKERS,),
    ),
    Mutant(
        "below another graph an agent that speaks in a person's place is a person",
        "graphs/turn/run.py",
        "self.is_below = bool(self._graph)",
        "self.is_below = False",
        (BELOW,),
    ),
    Mutant(
        "what an agent says in a person's place below another graph is learned",
        "graphs/turn/memory.py",
        'if run.is_below and role_of(one, speaker) == "other"',
        'if False and role_of(one, speaker) == "other"',
        (SPEAKERS,),
    ),
    Mutant(
        "who speaks first in a thread of several is the user for good",
        "memory/updates/transcript.py",
        "entries = [replace(one, messages=tuple(each.heard(speaker) for each in one.messages)) for one in entries]",
        "pass",
        (SPEAKERS,),
    ),
    Mutant(
        "a summary that takes people's words away makes the last one who speaks the user",
        "graphs/turn/memory.py",
        "*([epochs.speaker] if thread.receipt else [])",
        "",
        (SPEAKERS,),
    ),
    Mutant(
        "a summary of a middleware makes an agent forget what it stands for",
        "graphs/middleware/memory.py",
        "self.run(runtime), thread, is_whole=is_whole)",
        "self.run(runtime), thread)",
        (AGENTS,),
    ),
    Mutant(
        "past turns that changed since they were indexed are shown",
        "memory/recall/user_index.py",
        "(changed is not None and document.entry not in changed)",
        "True",
        (FACTS,),
    ),
    Mutant(
        "what a tool remembers outlives its thread",
        "graphs/tools_of_memory.py",
        "    if erased_between(call.epochs.thread_epoch, erase.epoch) or epoch != snapshot.control.epoch:",
        "    if epoch != snapshot.control.epoch:",
        (ERASED_THREADS,),
    ),
    Mutant(
        "vectors of what is deleted stay",
        "memory/door.py",
        "    return [*batch, *gone]",
        "    return [*batch]",
        (FACTS,),
    ),
    Mutant(
        "vectors of what is erased while they are made stay",
        "memory/recall/vectors.py",
        "if set(said) <= set(there.get(name, ()))",
        "if True",
        (FACTS,),
    ),
    Mutant(
        "what is learned is lost where the process is killed before it is applied",
        "memory/updates/update.py",
        "                    receipt, claim = self.do(self._apply(claim, self._extract(claim)))\n",
        "                    found, last = self._extract(claim), claim.batch[-1]\n"
        "                    receipt, claim = self.do(self._apply(claim, Extraction()))\n"
        "                    self.do(transaction(change_facts)(self.owner, found, thread_id=last.thread_id, "
        "epoch=last.epoch, now=self.now(), config=self.config))\n",
        (matrix("learn-kill"),),
    ),
    Mutant(
        "a turn that is written down twice waits twice",
        "memory/updates/entry.py",
        "return digest(self.kind, self.thread_id, *map(_ID, self.messages))",
        "return __import__('uuid').uuid4().hex",
        (matrix("say-none"),),
    ),
    Mutant(
        "what a person took back is learned again from another message of before",
        "memory/facts/records.py",
        'return DELETION + digest("fact", normalize(content))',
        "return DELETION + __import__('uuid').uuid4().hex",
        ("tests/rules/test_applying.py",),
    ),
    Mutant(
        "what left by a summary is dropped where a newer context takes the older one's place",
        "memory/updates/conversation.py",
        "return replace(self, carried_over=tuple(carried.values()), at_once",
        "return replace(self, at_once",
        (QUEUE,),
    ),
    Mutant(
        "an update leaves more facts than the limit",
        "memory/facts/fact_set.py",
        "reverse=True)[self.config.max_facts :]",
        "reverse=True)[len(self.rows) :]",
        (matrix("learn-none"),),
    ),
    Mutant(
        "the hook is given again what the view left out before",
        "memory/context/summarizer.py",
        "new = talk.fresh(gone.difference(now.handed))",
        "new = talk.fresh(gone)",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "a prepared summary of messages that were edited since",
        "memory/context/summarizer.py",
        "return number > 0 and written ==",
        "return number > 0 or written ==",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "a prepared summary made under other settings",
        "graphs/turn/prepared.py",
        "if kept is not None and kept.due != due:",
        "if False:",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "what a summary had come to is asked for again",
        "graphs/turn/prepared.py",
        "begun.part = kept.part if stands else None",
        "begun.part = None",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "a turn waits for a summary after all",
        "memory/context/summarizer.py",
        "if waits and not cut:",
        "if not cut:",
        ("tests/laws/test_rules_prepared.py",),
    ),
    Mutant(
        "what was just repeated goes first at the limit",
        "memory/facts/fact_set.py",
        "fact.confidence, again, fact.created_at, fact.id)",
        "fact.confidence, 0, fact.created_at, fact.id)",
        (FACTS,),
    ),
    Mutant(
        "what goes at the limit is gone",
        "memory/facts/fact_set.py",
        'if fact.id in older or history_key(fact) in self._before["history"]:',
        "if False:",
        (FACTS,),
    ),
    Mutant(
        "past messages of deleted facts are told again",
        "memory/recall/past.py",
        "is_any = facts.notes or shunned.ids",
        "is_any = False",
        (FACTS,),
    ),
    Mutant(
        "history tells what nobody was asked about",
        "memory/updates/rollup.py",
        "past = await read_past(owner)",
        "past = await __import__('memory.recall.past', fromlist=['x']).read_journal(owner)",
        (FACTS,),
    ),
    Mutant(
        "what holds no longer is shown as current",
        "memory/injection/selection.py",
        "snapshot = snapshot.at(turn.now)",
        "pass",
        (FACTS,),
    ),
    Mutant(
        "what was over when it was said ends",
        "memory/extraction/validation.py",
        "last is None or said is None or last < said",
        "last is None",
        ("tests/rules/test_grounding.py",),
    ),
    Mutant(
        "a fact may rest on any line of the assistant",
        "memory/extraction/dialogue.py",
        "    return messages[at - 1].text\n",
        '    return " ".join(each.text for each in messages[:at])\n',
        ("tests/rules/test_grounding.py",),
    ),
    Mutant(
        "of more than a store gives at once the rest is not seen",
        "memory/door.py",
        "        limit *= 4\n",
        "        break\n",
        (PROMISES,),
    ),
    Mutant(
        "a line for each time that a message is written down",
        "memory/journal/entry.py",
        'return digest("journal", thread_id, message_id)[:32]',
        "return __import__('uuid').uuid4().hex",
        (PROMISES,),
    ),
    Mutant(
        "a line of its own for what a summary cut in two",
        "memory/journal/journal.py",
        "key = homes.get((entry.thread_id, entry.messages[0].id), entry.key)",
        "key = entry.key",
        (PROMISES,),
    ),
    Mutant(
        "messages that deleted facts came from are written down again",
        "memory/updates/update.py",
        "gone = with_replies(said, forgotten)",
        "gone = with_replies(said, ())",
        (PROMISES,),
    ),
    Mutant(
        "who reads the journal in the middle of a deletion keeps what they read",
        "memory/facts/fact_set.py",
        '"edit": self.count_edit(), **more}',
        '"edit": self.control.edit, **more}',
        (PROMISES,),
    ),
    Mutant(
        "who reads the journal before a deletion keeps what they read",
        "memory/recall/past.py",
        "    return replace(view, entries={key",
        "    edit = (await read_control(owner)).edit\n    return replace(view, entries={key",
        (PROMISES,),
    ),
    Mutant(
        "what failed for good has no line",
        "memory/updates/update.py",
        "                await self._tell(read, read.control)",
        "                pass",
        (PROMISES,),
    ),
    Mutant(
        "what could not be read is not read later",
        "memory/updates/transcript.py",
        "read = [one for one in self.every if one.id not in later]",
        "read = [*self.every]",
        (PROMISES,),
    ),
    Mutant(
        "what was read in one thread is not read in another",
        "memory/updates/learned.py",
        'return digest("seen", thread_id)[:32]',
        'return digest("seen")[:32]',
        (PROMISES,),
    ),
    Mutant(
        "no look at the epochs after the last write",
        "memory/updates/update.py",
        "        if not is_there or (control.epoch, control.erased) != (last.epoch, claim.control.erased):",
        "        if False:",
        (PROMISES,),
    ),
    Mutant(
        "a turn after an erase learns from before it",
        "memory/turn.py",
        "learn_from = asked if asked and (is_user_erased or is_thread_erased) else self.learn_from",
        "learn_from = self.learn_from",
        (ERASED_THREADS,),
    ),
    Mutant(
        "epochs that could not be read count as read",
        "memory/turn.py",
        "        if now is None:\n            return self\n",
        "        now = now or TurnEpochs()\n",
        LEFT,
    ),
    Mutant(
        "a summary writes down what was erased",
        "memory/turn.py",
        "if message.id not in erased]",
        "]",
        (ERASED_THREADS,),
    ),
    Mutant(
        "a question in a stricter mode is shown memory",
        "graphs/turn/memory.py",
        "run.context.memory_tokens == 0 or not may_read(mode):",
        "run.context.memory_tokens == 0:",
        ("tests/laws/test_rules_modes.py",),
    ),
    Mutant(
        "a turn that is written down late reaches behind an erase",
        "memory/updates/unwritten.py",
        "if learn_from and any(message.id == learn_from for message in messages[end:]):",
        "if False:",
        LEFT,
    ),
    Mutant(
        "a turn is written down late twice",
        "memory/updates/outbox.py",
        "if turn in note.late:",
        "if False:",
        LEFT,
    ),
    Mutant(
        "an erased user's turn is written down late",
        "memory/updates/outbox.py",
        "*(() if epoch else (control.epoch_at,)), ",
        "",
        LEFT,
    ),
    Mutant(
        "one user's bad value sends the store away",
        "graphs/turn/stores.py",
        "                return True\n",
        "                return False\n",
        ("tests/laws/test_rules_outages.py",),
    ),
    Mutant(
        "an erase forgets the outbox",
        "memory/forget/erase.py",
        "if items and namespace != user.control:",
        'if items and namespace != user.control and namespace[-1] != "outbox":',
        (matrix("erase everything-none"),),
    ),
    Mutant(
        "an undo reaches behind an erase",
        "memory/facts/rules.py",
        'if chosen not in times or chosen <= facts.control.erased_at.get(facts.owner.agent_name, ""):',
        "if chosen not in times:",
        (PROMISES,),
    ),
    Mutant(
        "an erased fact leaves what it corrected",
        "memory/facts/chain.py",
        "waiting = {other for each in waiting for other in neighbours[each]} - found",
        "waiting = set()",
        (PROMISES,),
    ),
    Mutant(
        "the echo of an erased message stays",
        "memory/message.py",
        "if is_reply_gone or message.id in gone:",
        "if message.id in gone:",
        (matrix("erase fact-none"),),
    ),
    Mutant(
        "an erased fact is looked for by its sources alone",
        "memory/facts/chain.py",
        " or self.is_told_in(message.text, is_source=is_source)",
        "",
        (matrix("erase fact-none"),),
    ),
    Mutant(
        "what was said in a run beside this one taken for edited away",
        "memory/updates/transcript.py",
        "if entry.overlapped or _is_beside(entry, view)",
        "if entry.overlapped",
        (EDITED,),
    ),
    Mutant(
        "what was said in a run beside an earlier one taken for edited away",
        "memory/updates/transcript.py",
        "if entry.overlapped or _is_beside(entry, view)",
        "if _is_beside(entry, view)",
        (EDITED,),
    ),
    Mutant(
        "two workers ask a model for the same update",
        "memory/updates/update.py",
        "lease.is_free(now, me) if is_new",
        "True if is_new",
        (UPDATES,),
    ),
    Mutant(
        "a worker whose lease is another's writes all the same",
        "memory/updates/update.py",
        "else lease.token == self.token):",
        "else True):",
        (UPDATES,),
    ),
    Mutant(
        "what changes while a model is asked is given up",
        "memory/updates/entry.py",
        '    if isinstance(error, Overtaken):\n        return "not_now"\n',
        "",
        (UPDATES,),
    ),
    Mutant(
        "what is said to another process begins no quiet time",
        "memory/updates/update.py",
        "    if quiet_from > now:",
        "    if False:",
        (UPDATES,),
    ),
    Mutant(
        "a sweep reads what was said to one agent of a user",
        "graphs/process/service.py",
        "            async with users[owner.segment], places:",
        "            async with places:",
        (UPDATES,),
    ),
    Mutant(
        "leases of this process that are taken while they are worked under",
        "memory/updates/lease.py",
        "return self.token not in me.under_way if self.pid == me.pid",
        "return True if self.pid == me.pid",
        ("tests/rules/test_lease.py",),
    ),
    Mutant(
        "an update waits for a worker that is dead",
        "memory/updates/lease.py",
        "else not me.is_alive(self.pid)",
        "else False",
        (UPDATES,),
    ),
    Mutant(
        "a wrong key is tried for ever",
        "memory/updates/entry.py",
        '    return "never" if 400 <= status < 500 and status not in _TRANSIENT else "again"',
        '    return "again"',
        ("tests/rules/test_failures.py",),
    ),
    Mutant(
        "one busy thread delays another user's memory",
        "memory/updates/queue.py",
        "first = min(free, key=lambda one: (one.due, one.first), default=None)",
        "first = max(free, key=lambda one: (one.due, one.first), default=None)",
        (QUEUE,),
    ),
    Mutant(
        "steady traffic is never learned",
        "memory/updates/queue.py",
        "due = now if context.at_once else min(now + config.debounce_seconds, first + config.max_wait_seconds)",
        "due = now if context.at_once else now + config.debounce_seconds",
        (QUEUE,),
    ),
    Mutant(
        "updates of a queue start at once",
        "memory/updates/queue.py",
        "max(0.0, max(first.due, self._earliest) - self._clock())",
        "max(0.0, first.due - self._clock())",
        (QUEUE,),
    ),
    Mutant(
        "updates of one drain start at once",
        "memory/updates/updater.py",
        "self._last_start = max(now, self._last_start + spacing)",
        "self._last_start = now",
        ("tests/laws/test_rules_learning.py",),
    ),
    Mutant(
        "two updates of one user run at once",
        "memory/updates/queue.py",
        "if key.user_id not in self._busy_users)",
        ")",
        (QUEUE,),
    ),
    Mutant(
        "a switch that switches nothing off",
        "memory/updates/queue.py",
        "        if not config.enabled:\n            return\n",
        "",
        (QUEUE,),
    ),
    Mutant(
        "a model that hangs keeps a process from ending",
        "memory/door.py",
        "name=name, daemon=True",
        "name=name, daemon=False",
        ("tests/laws/test_rules_learning.py",),
    ),
    Mutant(
        "what was edited away is learned",
        "memory/updates/learned.py",
        "pending, after = ({key: every[key] for key in turns} for turns in (pending, before))",
        "after = {key: every[key] for key in before}",
        (EDITED,),
    ),
    Mutant(
        "what was learned and edited away stays known",
        "memory/updates/learned.py",
        "        rules.follow_branch(facts, draft.thread_id, gone, was - gone, rewritten)\n",
        "",
        (BRANCHES,),
    ),
    Mutant(
        "a cleared thread takes along what was learned",
        "memory/updates/learned.py",
        "            if not said[0].seen:\n",
        "            if False:\n",
        (BRANCHES,),
    ),
    Mutant(
        "what a summary took counts as edited away",
        "memory/updates/transcript.py",
        "is_newer = view.is_complete",
        "is_newer = True",
        (EDITED,),
    ),
    Mutant(
        "what was trimmed counts as edited away",
        "memory/updates/transcript.py",
        "        kept |= new\n",
        "",
        (EDITED,),
    ),
    Mutant(
        "what is back in the thread stays edited away",
        "memory/updates/transcript.py",
        "for identity in entry.edited_away} - kept",
        "for identity in entry.edited_away}",
        (EDITED,),
    ),
    Mutant(
        "a cut's words lose to older ones",
        "memory/updates/transcript.py",
        "words = one if entry.created >= at else earlier",
        "words = one",
        (EDITED,),
    ),
    Mutant(
        "the middle of a long message is not read",
        "memory/updates/transcript.py",
        "for exchange in exchanges(in_pieces(unseen(self.said, self.flushed))):",
        "for exchange in exchanges(unseen(self.said, self.flushed)):",
        ("tests/laws/test_rules_learning.py",),
    ),
    Mutant(
        "a roll-up that sees no erase",
        "memory/updates/rollup.py",
        "    if is_changed or texts_of(await read_profile(owner)) != plan.profile:",
        "    if False:",
        (FACTS,),
    ),
    Mutant(
        "what failed is not tried again",
        "memory/updates/queue.py",
        "                if failures:\n",
        "                if False:\n",
        (QUEUE,),
    ),
    Mutant(
        "two writers of one user at once",
        "memory/door.py",
        "                elif not before.done():\n",
        "                elif False:\n",
        ("tests/laws/test_rules_writing.py",),
    ),
    Mutant(
        "what is pending of an erased thread stays",
        "memory/forget/erase.py",
        "outbox.rewrite(owner, lambda entry: entry if entry.thread_id != thread_id else None)",
        "outbox.rewrite(owner, lambda entry: entry)",
        (matrix("erase thread-none"),),
    ),
    Mutant(
        "a scheduled reply is read apart from its message",
        "memory/updates/transcript.py",
        "strip_scheduled(every, is_open=is_open)",
        "strip_scheduled(every)",
        ("tests/laws/test_rules_learning.py",),
    ),
    Mutant(
        "an update that gets no thread is lost",
        "memory/updates/queue.py",
        "                    self._end(key, first)\n",
        "                    pass\n",
        (QUEUE,),
    ),
    Mutant(
        "what was said before an edit changes the fact",
        "memory/facts/applying.py",
        "if target and is_overtaken(target, change):",
        "if False:",
        (PROMISES,),
    ),
    Mutant(
        "the model's reading of an older revision counts",
        "memory/facts/applying.py",
        "is_unread = 0 < change.target_revision < target.revision",
        "is_unread = False",
        (PROMISES,),
    ),
    Mutant(
        "clocks alone tell what came first",
        "memory/facts/changes.py",
        "if said.said_after and isinstance(edit, int) and edit:",
        "if False:",
        (PROMISES,),
    ),
    Mutant(
        "an edited fact is not spared",
        "memory/facts/rules.py",
        "new = replace(new, source=by)",
        "pass",
        ("tests/laws/test_rules_promises.py",),
    ),
    Mutant(
        "what is done is looked at again and again",
        "memory/updates/outbox.py",
        'delete(DUE, owner.due_key) if due is None else put(DUE, owner.due_key, {"due": due})',
        'put(DUE, owner.due_key, {"due": due or 0.0})',
        (PROMISES,),
    ),
    Mutant(
        "a pin ends with the next edit",
        "memory/facts/rules.py",
        'for name, each in {**given, "source": source}.items() if each is not None',
        'for name, each in {**given, "source": source, "pinned": bool(pinned)}.items() if each is not None',
        (matrix("pin-edit"),),
    ),
    Mutant(
        "a process takes what another one works on",
        "memory/updates/lease.py",
        "else not me.is_alive(self.pid)",
        "else True",
        (UPDATES,),
    ),
    Mutant(
        "what fails for good is tried for ever",
        "memory/updates/entry.py",
        "        if is_alone:\n",
        "        if False:\n",
        ("tests/laws/test_rules_promises.py",),
    ),
    Mutant(
        "a process that runs on takes nothing that another left",
        "graphs/process/service.py",
        "owners = await arun(store, outbox.due_owners(self.clock()), self._config.store_timeout_seconds)",
        "owners = []",
        (UPDATES,),
    ),
    Mutant(
        "what a model is not sure of is stored",
        "memory/extraction/validation.py",
        "elif confidence < self.task.config.confidence_threshold:",
        "if False:",
        (UPDATES,),
    ),
    Mutant(
        "a drain ends with its first portion",
        "memory/updates/update.py",
        "self.now(), not rest",
        "self.now(), True",
        (HANDS,),
    ),
    Mutant(
        "an imported fact is as new as its import",
        "memory/archive/entries.py",
        '"confidence", "createdAt", "editedAt",',
        '"confidence", "editedAt",',
        (HANDS,),
    ),
    Mutant(
        "what is learned passes the cap",
        "memory/facts/applying.py",
        "for fact in facts.limit() if",
        "for fact in list[Fact]() if",
        (matrix("learn-none"),),
    ),
    Mutant(
        "a turn waits for a store as long as it hangs",
        "memory/config.py",
        "    read_timeout_seconds: _Seconds = 2.0\n",
        "    read_timeout_seconds: _Seconds = 600.0\n",
        (FAILING,),
    ),
    Mutant(
        "a store that fails fails the turn",
        "graphs/turn/stores.py",
        "with tolerated(logger, consequence), suppress(StoreAway):",
        "with suppress(StoreAway):",
        (FAILING,),
    ),
    Mutant(
        "a power cut takes what was committed",
        "graphs/persistence/connection.py",
        '"PRAGMA synchronous=FULL"',
        '"PRAGMA synchronous=NORMAL"',
        (FAILING,),
    ),
    Mutant(
        "a deletion that breaks off is forgotten",
        "graphs/server/deletions.py",
        '            await arun(self.store, record_deletion(replace(asked, state="done")))\n',
        "            await arun(self.store, drop_deletion(asked))\n",
        (FAILING,),
    ),
    Mutant(
        "a call that was begun is begun again",
        "graphs/turn/calls.py",
        'if calls.begun.get(str(call["id"])):',
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "a call that a person approved is not carried out",
        "graphs/turn/calls.py",
        "        await calls.mark(call, begun=False)\n        raise",
        "        raise",
        (KEEP,),
    ),
    Mutant(
        "a copy of a checkpoint hides what had begun",
        "graphs/turn/calls.py",
        'if metadata.get("source") == "fork":',
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "a finished result is dropped as the user goes on",
        "graphs/turn/calls.py",
        "*map(calls.result, left), ",
        "",
        (KEEP,),
    ),
    Mutant(
        "two calls of one id have one result",
        "graphs/turn/calls.py",
        'own_id = own_name(call["id"] or "call", lambda name: name not in taken)',
        'own_id = call["id"] or "call"',
        (KEEP,),
    ),
    Mutant(
        "a call that cannot be read is told as one that may have been carried out",
        "graphs/turn/calls.py",
        "with_own_ids(message, message.tool_calls, taken)",
        "with_own_ids(message, (*message.tool_calls, *message.invalid_tool_calls), taken)",
        (KEEP,),
    ),
    Mutant(
        "a call that cannot be read is carried out",
        "graphs/turn/nodes.py",
        'if GARBLED in call["args"]:',
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "a tool that nobody offered is called",
        "graphs/turn/nodes.py",
        'if call["name"] not in offered:',
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "the model is asked behind tools that return directly",
        "graphs/turn/nodes.py",
        '(one.name in direct and one.status == "success")',
        "False",
        (KEEP,),
    ),
    Mutant(
        "the model is asked in a thread that a tool has cleared",
        "graphs/turn/nodes.py",
        "return not thread.messages\n",
        "return False\n",
        (KEEP,),
    ),
    Mutant(
        "a call that raises ends the turn",
        "graphs/chat.py",
        "handle_tool_errors=True",
        "handle_tool_errors=False",
        (KEEP,),
    ),
    Mutant(
        "equal instructions are told twice",
        "memory/context/running_summary.py",
        "once = {str(one.text): one for",
        "once = {str(one.id): one for",
        ("tests/laws/test_rules_view.py",),
    ),
    Mutant(
        "instructions in the middle of a thread go with its summary",
        "memory/context/running_summary.py",
        "if one.id in running.kept]",
        "if False]",
        (KEEP,),
    ),
    Mutant(
        "what is cleared in one input with new words is told",
        "graphs/turn/state.py",
        "return [*_CLEARED.items()] if is_cleared else []",
        "return []",
        (KEEP,),
    ),
    Mutant(
        "what a client of an agent has cleared is told",
        "graphs/middleware/asked.py",
        "if is_of_client and any(",
        "if False and any(",
        (AGENT,),
    ),
    Mutant(
        "a message that says nothing is sent",
        "memory/context/turns.py",
        "if not calls and (not kept or (isinstance(kept, list) and _thinks_only(kept))):",
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "what a run told in the place of an empty answer is sent to the model",
        "memory/message.py",
        "if message.additional_kwargs.get(TOLD_KEY):",
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "an empty answer stays the user's answer",
        "graphs/turn/prompt.py",
        "if is_empty(spoken(answer)):",
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "names are sent as clients write them",
        "memory/context/turns.py",
        "name = own_name(sent_name(name), lambda",
        "name = own_name(name, lambda",
        (KEEP,),
    ),
    Mutant(
        "two people have one name",
        "memory/context/turns.py",
        "names.setdefault(one, str(message.name)) == message.name)",
        "bool(one))",
        (KEEP,),
    ),
    Mutant(
        "neighbours of one role stay apart",
        "memory/context/turns.py",
        "is_same = turns and any",
        "is_same = False and any",
        (KEEP,),
    ),
    Mutant(
        "a prompt begins with the assistant",
        "memory/context/turns.py",
        "if not turns and not isinstance(message, HumanMessage):",
        "if False:",
        (KEEP,),
    ),
    Mutant(
        "a model is sent another provider's blocks",
        "graphs/turn/content.py",
        "if not isinstance(message, AIMessage) or is_own(message):",
        "if True:",
        (KEEP,),
    ),
    Mutant(
        "a model is sent what was thought aloud",
        "memory/message.py",
        "            said[at] = after_thoughts(block)\n",
        "            pass\n",
        (KEEP,),
    ),
    Mutant(
        "thoughts of tool rounds are not passed back",
        "graphs/process/provider_models.py",
        '_THOUGHTS = ("reasoning_content", "reasoning")',
        "_THOUGHTS = ()",
        (KEEP,),
    ),
    Mutant(
        "of two hand-offs one happens",
        "graphs/turn/calls.py",
        "for one in handoffs:",
        "for one in handoffs[:1]:",
        (BELOW,),
    ),
    Mutant(
        "a turn that is handed off is not learned",
        "graphs/turn/nodes.py",
        "            await self._memory.end(run, thread)\n            raise",
        "            raise",
        (BELOW,),
    ),
    Mutant(
        "a hand-off leaves the results of other calls behind",
        "graphs/turn/calls.py",
        'updates.append(("messages", results))',
        "pass",
        (BELOW,),
    ),
    Mutant(
        "a context of a graph above is taken for ours",
        "graphs/turn/context.py",
        "given if isinstance(given, Context) else Context()",
        "given or Context()",
        (BELOW,),
    ),
    Mutant(
        "a tool's result is read as the user's words",
        "memory/message.py",
        'return "assistant" if isinstance(message, AIMessage) else None',
        'return "assistant" if isinstance(message, AIMessage) else "user"',
        ("tests/laws/test_rules_tools.py",),
    ),
    Mutant(
        "an agent's view is not cut to its tokens",
        "graphs/middleware/summary.py",
        "fits = is_early or self._counter(sent) <= prompt.max_tokens",
        "fits = True",
        ("tests/laws/test_rules_view.py",),
    ),
    Mutant(
        "a fact that a person edited goes with its import",
        "memory/backfill/source.py",
        "if elsewhere or fact.pinned or fact.edited_at:",
        "if elsewhere or fact.pinned:",
        (HANDS,),
    ),
    Mutant(
        "an undo passes the limit of facts",
        "memory/facts/rules.py",
        "    facts.limit()\n    # But not the fact that it corrected",
        "    # But not the fact that it corrected",
        (HANDS,),
    ),
    Mutant(
        "a known fact that is added again loses its pin",
        "memory/facts/rules.py",
        "return update(facts, fact.id, pinned=pinned or None,",
        "return update(facts, fact.id,",
        (FACTS,),
    ),
    Mutant(
        "receipts are kept without end",
        "memory/updates/receipts.py",
        "[:-MAX_RECEIPTS]",
        "[:0]",
        ("tests/laws/test_rules_updates.py",),
    ),
    Mutant(
        "what holds no longer stays active",
        "memory/facts/rules.py",
        "over = [fact for fact in facts.active() if is_over(fact, now)]",
        "over = []",
        (FACTS,),
    ),
    Mutant(
        "what nobody decides waits for ever",
        "memory/facts/rules.py",
        "lapsed = [fact for fact in facts.rows.values() if facts.has_lapsed(fact)]",
        "lapsed = []",
        (FACTS,),
    ),
    Mutant(
        "a user writes into another user's part of the store",
        "graphs/server/permissions.py",
        "if namespace[:2] != own:",
        "if namespace[:1] != own[:1]:",
        ("tests/rules/test_permissions.py",),
    ),
    Mutant(
        "a user writes what only memory writes",
        "graphs/server/permissions.py",
        "namespace[3] in EDITABLE_KINDS",
        "True",
        ("tests/rules/test_permissions.py",),
    ),
    Mutant(
        "a user publishes an assistant to all",
        "graphs/server/permissions.py",
        "if OPERATOR not in ctx.permissions:",
        "if False:",
        ("tests/rules/test_permissions.py",),
    ),
    Mutant(
        "each turn waits for an index that takes too long",
        "graphs/process/recalling.py",
        " and work not in self._late:",
        ":",
        ("tests/rules/test_recalled_turns.py",),
    ),
    Mutant(
        "the first question in a new process is shown no past turns",
        "graphs/process/recalling.py",
        "if is_behind and work not in self._late:",
        "if False:",
        (PROMISES,),
    ),
    Mutant(
        "a user calls an assistant the system's",
        "graphs/server/permissions.py",
        'metadata.pop("created_by", None)',
        "pass",
        ("tests/rules/test_permissions.py",),
    ),
    Mutant(
        "another web site has a browser ask",
        "graphs/server/api/guard.py",
        "if origin is not None and origin not in allowed",
        "if False and origin not in allowed",
        ("tests/rules/test_guard.py",),
    ),
)


def noticed_by(mutant: Mutant, copy: Path) -> str:
    """Return the test that fails, `""` where none does; `ValueError` if there is nothing to break or to run."""
    path = copy / mutant.file
    source = path.read_text("utf-8")
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} no longer holds the line to change exactly once")
    path.write_text(source.replace(mutant.old, mutant.new), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *mutant.tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}  # noqa: TID251 - passed on
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    finally:
        path.write_text(source, "utf-8")
    if done.returncode in (NO_SUCH_FILE, NO_TESTS):
        raise ValueError(f"{mutant.name}: {', '.join(mutant.tests)} cannot be run")
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else "the end of the run" if done.returncode else ""


def main() -> int:
    """Try every mutant, or those whose name holds what is given, and return how many nothing notices."""
    asked = sys.argv[1:]
    chosen = [mutant for mutant in MUTANTS if not asked or any(part in mutant.name for part in asked)]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for room in ROOMS:
            source = PROJECT / room
            if source.is_dir():
                shutil.copytree(source, copy / room, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
            else:
                shutil.copy(source, copy / room)
        for mutant in chosen:
            test = noticed_by(mutant, copy)
            unnoticed += not test
            sys.stdout.write(f"{mutant.name} | {test or 'NOTHING NOTICES IT'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - unnoticed} of {len(chosen)} are noticed\n")
    return unnoticed


if __name__ == "__main__":
    sys.exit(main())
