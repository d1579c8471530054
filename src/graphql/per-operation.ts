import type { GraphqlContext } from './context.ts';

/** Makes one value for each operation, the first time that it is asked for: a loader, say. */
export function perOperation<Value>(create: (context: GraphqlContext) => Value): (context: GraphqlContext) => Value {
  const values = new WeakMap<GraphqlContext, { value: Value }>();
  return (context) => {
    const existing = values.get(context);
    if (existing) return existing.value;
    const value = create(context);
    values.set(context, { value });
    return value;
  };
}
