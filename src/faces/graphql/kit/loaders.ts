import DataLoader from 'dataloader';
import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import type { GraphqlContext } from './graphql-context.ts';

/** Reads the values of keys, in their order; an error stands for a key whose value cannot be read. */
type Load<Value, Args extends unknown[] = []> = (
  keys: readonly string[],
  context: GraphqlContext,
  ...args: Args
) => Promise<readonly (Value | Error)[]>;

/** Makes one value for each operation, the first time that it is asked for. */
function perOperation<Value>(create: (context: GraphqlContext) => Value): (context: GraphqlContext) => Value {
  const values = new WeakMap<GraphqlContext, Value & object>();
  return (context) => {
    const existing = values.get(context);
    if (existing) return existing;
    const value = create(context) as Value & object;
    values.set(context, value);
    return value;
  };
}

/** Gives each operation a DataLoader of its own. With `cache: false` a key that is asked for again is read again. */
export function loaderPerOperation<Value>(load: Load<Value>, options: { cache?: boolean } = {}) {
  return perOperation((context) => new DataLoader<string, Value>((keys) => load(keys, context), options));
}

/**
 * Gives each field of an operation a DataLoader of its own: the objects that have the field at one place of the document,
 * where its arguments are the same, are read together.
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
