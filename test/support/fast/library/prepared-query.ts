import type { Compilable, CompiledQuery } from 'kysely';

interface Dependencies<Builder> {
  scoped(nodeId: string): Builder;
  run<Row>(query: CompiledQuery<Row>, nodeId: string, name?: string): Promise<Row[]>;
}

/** Builds and compiles each query anew, as Kysely does, and lets no connection keep it. */
export class PreparedQueries<Builder> {
  readonly #deps: Dependencies<Builder>;

  constructor(parts: Dependencies<Builder>) {
    this.#deps = parts;
  }

  forms<Row, Given extends object>(build: (k: Builder, given: Given) => Compilable<Row>) {
    const { scoped, run } = this.#deps;
    return { run: (nodeId: string, given: Given) => run(build(scoped(nodeId), given).compile(), nodeId) };
  }
}
