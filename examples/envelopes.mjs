// Stamps every event of a run with the checkpoint it belongs to: { id, parent_id, step, source }.
//
//   const parts = client.runs.stream(threadId, "chat", { input, streamMode: STREAM_MODE, streamSubgraphs: true });
//   for await (const event of stampedEvents(parts)) console.log(event.type, event.name, event.checkpoint?.id);
//
// A node's events, and everything below it, carry the checkpoint that its step runs from; a chunk of `values` carries
// the checkpoint that it equals; the root's start carries the first checkpoint of the run, its end the last. An event
// is yielded as soon as its checkpoint is known. The same in Python: graphs/streaming/envelopes.py.

/** Beside the chunks you want, a run must stream these. */
export const STREAM_MODE = ["events", "values", "updates", "checkpoints", "tasks"];

/** Yields `on_chain_start`, `on_chat_model_stream`, `on_custom_event`, ... each with `type` and `checkpoint`. */
export async function* stampedEvents(parts, modes = ["values", "updates"]) {
  const pairing = new Pairing(modes);
  let root;
  for await (const { event: part, data } of parts) {
    const [mode, ...namespace] = part.split("|");
    if (mode === "error") {
      yield* pairing.finish();
      throw new Error(`${data.error}: ${data.message}`);
    }
    if (mode === "events") yield* pairing.feed((root ??= data) && data);
    else if (root) yield* pairing.feed({ ...root, event: "on_chain_stream", data: { chunk: [namespace, mode, data] } });
  }
  yield* pairing.finish();
}

class Pairing {
  #modes;
  #root; // the run id of the graph itself
  #runs = new Map(); // run id → { task, graph, step, parent }
  #latest = new Map(); // graph → its newest checkpoint; null when it makes none
  #steps = new Map(); // graph and step → checkpoint
  #announced = new Map(); // task → its graph
  #held = []; // [event, run] whose checkpoint was not announced yet

  constructor(modes) {
    this.#modes = new Set(modes);
  }

  feed(event) {
    const isRoot = event.run_id === (this.#root ??= event.run_id);
    if (isRoot && event.event === "on_chain_stream") return this.#chunk(event, ...event.data.chunk);
    if (isRoot && event.event === "on_chain_end") return [...this.finish(), stamped(event, this.#latest.get(""))];
    return this.#stampOrHold(event, this.#runOf(event));
  }

  finish() {
    return this.#held.splice(0).map(([event, run]) => stamped(event, this.#nearest(run)));
  }

  #chunk(event, namespace, mode, chunk) {
    const graph = namespace.join("|");
    const ready = [];
    if (mode === "checkpoints") ready.push(...this.#learn(graph, envelope(chunk)));
    if (mode === "tasks") {
      this.#announced.set(`${chunk.name}:${chunk.id}`, graph);
      // A step's tasks are announced after the checkpoint it runs from: without one, this graph makes none.
      ready.push(...(this.#latest.has(graph) ? this.#retry() : this.#learn(graph, null)));
    }
    if (!this.#modes.has(mode)) return ready;
    // An interrupt repeats the values that its step runs from; no checkpoint follows.
    const isNext = mode === "values" && chunk?.__interrupt__ === undefined;
    const step = isNext ? undefined : this.#latest.get(graph)?.step;
    return [...ready, ...this.#stampOrHold(event, { graph, step })];
  }

  #learn(graph, checkpoint) {
    this.#latest.set(graph, checkpoint);
    if (checkpoint) this.#steps.set(key(graph, checkpoint.step), checkpoint);
    return this.#retry((run) => run.graph === graph && run.step === undefined);
  }

  #retry(isKnown = () => false) {
    return this.#held
      .splice(0)
      .flatMap(([event, run]) => (isKnown(run) ? [stamped(event, this.#nearest(run))] : this.#stampOrHold(event, run)));
  }

  #stampOrHold(event, run) {
    const graph = this.#graphOf(run);
    const checkpoint = this.#steps.get(key(graph, run.step));
    if (checkpoint) return [stamped(event, checkpoint)];
    if (this.#latest.get(graph) === null) return [stamped(event, this.#nearest(run))];
    this.#held.push([event, run]);
    return [];
  }

  /** The run's checkpoint, or else the newest of its graph, or else that of the graph around it. */
  #nearest(run) {
    const graph = this.#graphOf(run);
    const found = this.#steps.get(key(graph, run.step)) ?? this.#latest.get(graph);
    if (found) return found;
    if (run.parent) return this.#nearest(run.parent);
    return graph ? this.#nearest({ graph: graph.split("|").slice(0, -1).join("|") }) : null;
  }

  // A task that another task calls is a task of the same graph, whatever its path says.
  #graphOf(run) {
    return this.#announced.get(run.task?.at(-1)) ?? run.graph;
  }

  #runOf(event) {
    if (this.#runs.has(event.run_id)) return this.#runs.get(event.run_id);
    const parent = this.#runs.get(event.parent_ids.at(-1));
    const task = event.metadata.langgraph_checkpoint_ns?.split("|") ?? [];
    // What a node starts belongs to the node, unless it is a task below it: in a subgraph, with a step of its own.
    const isBelow = !parent || (task.length > parent.task.length && parent.task.every((name, at) => isPart(task[at], name)));
    const step = task.length ? event.metadata.langgraph_step - 1 : undefined;
    const run = isBelow ? { task, graph: task.slice(0, -1).join("|"), step, parent } : parent;
    this.#runs.set(event.run_id, run);
    return run;
  }
}

const key = (graph, step) => `${graph} ${step}`;
const stamped = (event, checkpoint = null) => ({ ...event, type: event.event, checkpoint });
// A subgraph that keeps its state is named without its task's id.
const isPart = (part, whole) => part === whole || part === whole.split(":")[0];

function envelope({ config, parent_config: parent, metadata }) {
  const { checkpoint_id: id } = config.configurable;
  const { step, source } = metadata;
  return { id, parent_id: parent?.configurable.checkpoint_id ?? null, step, source };
}
