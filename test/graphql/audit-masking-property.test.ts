import fc from 'fast-check';
import { type DocumentNode, parse, print, validate } from 'graphql';
import { describe, expect, inject, it } from 'vitest';
import { shown, shownRequest } from '../support/graphql/audit-records.ts';
import { schema } from '../support/graphql/audit-stand.ts';

const RUNS = inject('isThorough') ? 150 : 50;

// Letters that occur in no name, key or keyword, so that any trace of a secret can be seen, and so can a marker.
const secret = fc.stringMatching(/^(?:[ZQ] ?["\\\n]?){1,8}[ZQ]$/);
const marker = fc.stringMatching(/^(?:XY){1,6}$/);

/** A literal of a text: quoted, all in escapes, or as a block. */
const literalForm = fc.constantFrom<(text: string) => string>(
  (text) => JSON.stringify(text),
  (text) => `"${[...text].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`,
  (text) => `"""${text.replaceAll('"""', '\\"""').replace(/["\\]$/, '$& ')}"""`,
);

/** Gives values their places: literals, variables, and defaults of variables. */
class Placing {
  readonly variables: Record<string, string> = {};
  readonly definitions: string[] = [];

  place(text: string, way: number, literal: (text: string) => string): string {
    if (way === 0) return literal(text);
    const name = `v${this.definitions.length}`;
    this.definitions.push(way === 1 ? `$${name}: String!` : `$${name}: String! = ${literal(text)}`);
    if (way === 1) this.variables[name] = text;
    return `$${name}`;
  }

  document(body: string): string {
    return `mutation${this.definitions.length === 0 ? '' : `(${this.definitions.join(', ')})`} { ${body} }`;
  }
}

const way = fc.nat({ max: 2 });
const supervisor = fc.record({
  name: marker,
  password: secret,
  city: marker,
  apiToken: secret,
  key: secret,
  label: marker,
});
const operation = fc
  .record({
    inputs: fc.array(supervisor, { minLength: 1, maxLength: 3 }),
    ways: fc.infiniteStream(way),
    form: literalForm,
  })
  .map(({ inputs, ways, form }) => {
    const placing = new Placing();
    const put = (text: string) => placing.place(text, ways.next().value ?? 0, form);
    const objects = inputs.map(
      ({ name, password, city, apiToken, key, label }) =>
        `{name: ${put(name)}, password: ${put(password)}, contact: {city: ${put(city)}, apiToken: ${put(apiToken)}, keys: [{label: ${put(label)}, clientSecret: ${put(key)}}]}}`,
    );
    const query = placing.document(`createSupervisors(inputs: [${objects.join(', ')}])`);
    const markers = inputs.flatMap(({ name, city, label }) => [name, city, label]);
    return { query, variables: placing.variables, markers };
  });

/** Selections of a made client, and the answer to them, each field under a name of its own. */
interface Part {
  selection: string;
  data: Record<string, unknown>;
}

const alias = fc.stringMatching(/^[a-j]{1,3}[0-9]{3}$/);
const leaf = fc.oneof(
  fc
    .tuple(alias, secret)
    .map(([name, value]): Part => ({ selection: `${name}: clientSecret`, data: { [name]: value } })),
  fc.tuple(alias, marker).map(
    ([name, value]): Part => ({
      selection: `${name}: client { ${name}: name }`,
      data: { [name]: { [name]: value } },
    }),
  ),
);
const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('part'), { minLength: 1, maxLength: 3 }).map((parts): Part => {
      return {
        selection: `... on Created { ${parts.map(({ selection }) => selection).join(' ')} }`,
        data: merged(parts),
      };
    }),
  ),
}));

function merged(parts: readonly Part[]): Record<string, unknown> {
  return Object.assign({}, ...parts.map(({ data }) => data));
}

function isValid(document: DocumentNode): boolean {
  return validate(schema, document).length === 0;
}

function markersOf(data: unknown): string[] {
  return JSON.stringify(data).match(/(?:XY)+/g) ?? [];
}

describe('masking, for any operation', () => {
  it('D2-21: no part of a secret is shown, wherever it is given, and every other value stays', () => {
    const property = fc.property(operation, ({ query, variables, markers }) => {
      expect(isValid(parse(query))).toBe(true);
      const kept = shownRequest({ query, variables });
      expect(JSON.stringify(kept)).not.toMatch(/[ZQ]/);
      const values = `${JSON.stringify(kept.variables)}${print(parse(kept.query))}`;
      for (const one of markers) expect(values).toContain(one);
    });
    fc.assert(property, { numRuns: RUNS });
  });

  it('D2-21: no part of a secret of an answer is shown, under any name and in any fragment, and every other value stays', () => {
    const property = fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), fc.boolean(), (parts, inList) => {
      const selections = parts.map(({ selection }) => selection).join(' ');
      const query = inList
        ? `{ things { ... on Created { ...F } } } fragment F on Created { ${selections} }`
        : `mutation { made: createClient(name: "n") { ...F } } fragment F on Created { ${selections} }`;
      fc.pre(isValid(parse(query)));
      const data = merged(parts);
      const answer = { data: inList ? { things: [data, { ...data }] } : { made: data } };
      const { response } = shown({ query }, answer);
      expect(response).not.toMatch(/[ZQ]/);
      expect(markersOf(JSON.parse(response))).toEqual(markersOf(answer));
    });
    fc.assert(property, { numRuns: RUNS });
  });
});
