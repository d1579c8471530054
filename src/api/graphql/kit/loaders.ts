import DataLoader from 'dataloader';
import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import type { GraphqlContext } from './graphql-context.ts';

/** Reads the values of keys, in their order; an Error stands for a key whose value cannot be read. */
type Load<Value, Args extends unknown[] = []> = (
  keys: readonly string[],
  context: GraphqlContext,
  ...args: Args
) => Promise<readonly (Value | Error)[]>;

/** Returns a function that creates one value per operation, on its first call for it. */
function perOperation<Value>(create: (context: GraphqlContext) => Value): (context: GraphqlContext) => Value {
  return (context) => {
    const { perOperation } = context;
    const existing = perOperation.get(create);
    if (existing) return existing as Value;
    const value = create(context);
    perOperation.set(create, value);
    return value;
  };
}

/** Creates a DataLoader for each operation. With `cache: false` a key that is loaded again is read again. */
export function loaderPerOperation<Value>(load: Load<Value>, options: { cache?: boolean } = {}) {
  return perOperation((context) => new DataLoader<string, Value>((keys) => load(keys, context), options));
}

/**
 * Creates a DataLoader for each field of an operation: all objects that have the field at the same place in the
 * document, and thus with the same arguments, are read together.
 */
export function loaderPerField<Args, Value>(load: Load<Value, [Args]>) {
  const loadersOf = perOperation(() => new Map<FieldNode | undefined, DataLoader<string, Value>>());
  return (args: Args, context: GraphqlContext, { fieldNodes: [field] }: GraphQLResolveInfo) => {
    const loaders = loadersOf(context);
    const loader =
      loaders.get(field) ?? new DataLoader<string, Value>((keys) => load(keys, context, args), { cache: false });
    loaders.set(field, loader);
    return loader;
  };
}
