import type { ExecutionArgs, execute } from 'graphql';

/** Executes operations as graphql-js does. */
export class CompiledOperations {
  readonly run: (args: ExecutionArgs) => ReturnType<typeof execute>;

  constructor({ reference }: { reference: (args: ExecutionArgs) => ReturnType<typeof execute> }) {
    this.run = reference;
  }
}
