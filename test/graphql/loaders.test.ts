import type { GraphQLResolveInfo } from 'graphql';
import { describe, expect, it } from 'vitest';
import { type GraphqlContext, loaderPerField } from '../../src/api/graphql/kit/resolvers.ts';

const context = () => ({ perOperation: new Map() }) as unknown as GraphqlContext;
const at = (place: object) => ({ fieldNodes: [place] }) as unknown as GraphQLResolveInfo;

function recorded() {
  const loads: { keys: string[]; args: string }[] = [];
  const loader = loaderPerField(async (keys, _context, args: string) => {
    loads.push({ keys: [...keys], args });
    await undefined;
    return keys.map((key) => `${key} of ${args}`);
  });
  const load = (key: string, args: string, one: GraphqlContext, place: GraphQLResolveInfo) =>
    loader(args, one, place).load(key);
  return { loads, load };
}

describe('objects with the same field in an operation', () => {
  it('are loaded together, and each gets its own value', async () => {
    const { loads, load } = recorded();
    const [one, place] = [context(), at({})];
    const late = Promise.resolve().then(() => load('c', 'x', one, place));
    const values = await Promise.all([load('a', 'x', one, place), load('b', 'x', one, place), late]);
    expect(values).toEqual(['a of x', 'b of x', 'c of x']);
    expect(loads).toEqual([{ keys: ['a', 'b', 'c'], args: 'x' }]);
  });

  it('are loaded separately for another place with other arguments, and for another operation', async () => {
    const { loads, load } = recorded();
    const [one, place] = [context(), at({})];
    const asked = [load('a', 'x', one, place), load('a', 'y', one, at({})), load('a', 'z', context(), place)];
    expect(await Promise.all(asked)).toEqual(['a of x', 'a of y', 'a of z']);
    expect(loads.map(({ args }) => args)).toEqual(['x', 'y', 'z']);
  });

  it('are loaded again if they are requested after the load has begun', async () => {
    const { loads, load } = recorded();
    const [one, place] = [context(), at({})];
    await load('a', 'x', one, place);
    await load('b', 'x', one, place);
    expect(loads.map(({ keys }) => keys)).toEqual([['a'], ['b']]);
  });
});
