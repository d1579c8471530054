import type { FieldNode, GraphQLResolveInfo } from 'graphql';
import type { GraphqlContext } from './context.ts';
import { perOperation } from './per-operation.ts';

interface Gathered<Value> extends PromiseWithResolvers<readonly Value[]> {
  keys: string[];
}

/** Reads the values of keys, in their order. */
type Load<Args, Value> = (keys: string[], context: GraphqlContext, args: Args) => Promise<readonly Value[]>;

/**
 * One `load` for all objects that have a field at one place of an operation, where its arguments are the same: it begins
 * once nobody else can ask. A load that fails fails each of them.
 */
export function perPlace<Args, Value>(load: Load<Args, Value>) {
  const placesOf = perOperation(() => new Map<FieldNode | undefined, Gathered<Value>>());
  return (key: string, args: Args, context: GraphqlContext, info: GraphQLResolveInfo): Promise<Value> => {
    const places = placesOf(context);
    const place = info.fieldNodes[0];
    const gathered = places.get(place) ?? begin();
    const index = gathered.keys.push(key) - 1;
    return gathered.promise.then((values) => values[index] as Value);

    function begin(): Gathered<Value> {
      const begun = { keys: [], ...Promise.withResolvers<readonly Value[]>() };
      places.set(place, begun);
      // Behind every promise that is settled by now: those of the other objects are among them.
      void Promise.resolve().then(() =>
        process.nextTick(() => {
          places.delete(place);
          begun.resolve(load(begun.keys, context, args));
        }),
      );
      return begun;
    }
  };
}
