import fc from 'fast-check';
import { randomDocument } from './random-document.ts';

/** Stands in every text of a caller, and in the names of operations and fragments: no generated code may have it. */
export const POISON = 'Poison';

/** Finds the names of `bare` that may be part of generated code: aliases and variables. */
export const CANARIES = /Canary\d+Z/g;

/** One document in two forms. */
export interface PlantedDocument {
  /** With canaries for its aliases and variables, and with no text that came to it below. */
  bare: string;
  /** With other names, comments, and what may not be compiled. */
  hostile: string;
  /** The aliases and variables of `hostile`, by their canaries in `bare`. */
  names: ReadonlyMap<string, string>;
  /** Whether `hostile` has something because of which it must not be compiled. */
  isRefused: boolean;
}

/** How graphql-jit marks what it puts into its code as it stands. */
export const MAGIC = '__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74d';

/** Names of JavaScript, and of the generated code itself. */
const WORDS = (
  'arguments async await break case catch class coerced const constructor default delete do err errors eval ' +
  'Error export finalType for function Function getVariables globalThis hasOwnProperty idx0 if Infinity input ' +
  'inspect length let message name NaN new nodeType null Object process prototype query require resolve result ' +
  'return self static super switch Symbol then this throw toJSON toString true typeof undefined valueOf var void ' +
  'while with yield GraphQLJITError'
).split(' ');

const ODD_NAMES = [
  ...['a_b', '_', 'x_', '_idx0', 'constructor_prototype'],
  ...['__proto__', '__context', '__parent', '__defineGetter__', `${MAGIC}1`, '__typenameX'],
  `${POISON}${'n'.repeat(65)}`,
];

/** Texts that are code wherever a quotation ends too early. */
const TEXTS = [
  `"${POISON}`,
  `${POISON}"]);globalThis.pwned=1;//`,
  `${POISON}'];globalThis.pwned=1;/*`,
  `\`${POISON}\${globalThis.pwned=1}`,
  `${MAGIC}1);(globalThis.pwned='${POISON}'`,
  `\\"${POISON}\\\\`,
  `\u2028globalThis.pwned=1;${POISON}\u2029`,
  `*/ ${POISON}() /*`,
];

type Pick = (bound: number) => number;

/** Documents of all kinds over the schema, with something hostile wherever a caller may write. */
export function plantedDocument(): fc.Arbitrary<PlantedDocument> {
  return fc.tuple(randomDocument(['an id']), fc.infiniteStream(fc.nat(1_000_000))).map(([{ query }, stream]) => {
    const pick: Pick = (bound) => Number(stream.next().value) % bound;
    const bare = withCanaries(query);
    const names = new Map<string, string>();
    const isOdd = pick(8) === 0;
    for (const [canary] of bare.matchAll(CANARIES)) {
      if (!names.has(canary)) names.set(canary, hostileName(pick, isOdd, new Set(names.values())));
    }
    const commented = bare.replaceAll(/[{}]/g, (brace) => (pick(4) === 0 ? `${brace}#${text(pick)}\r\n` : brace));
    const changed = pick(3) === 0 ? withFeature(commented, pick) : commented;
    const hostile = changed.replaceAll(CANARIES, (canary) => names.get(canary) ?? canary);
    const isRefused = changed !== commented || [...names].some(([canary, name]) => isBarred(name, bare, canary));
    return { bare, hostile, names, isRefused };
  });
}

/** Writes canaries for the aliases and variables of a random document, and poison for its other names. */
function withCanaries(query: string): string {
  const canaries = new Map<string, string>();
  return query.replaceAll(/\b(?:F\d+_\w+|Random\b)/g, `${POISON}$&`).replaceAll(/\bv\d+|\bf\d+x\d+(?=:)/g, (name) => {
    const canary = canaries.get(name) ?? `Canary${canaries.size}Z`;
    canaries.set(name, canary);
    return canary;
  });
}

function text(pick: Pick): string {
  return TEXTS[pick(TEXTS.length)] ?? '';
}

function hostileName(pick: Pick, isOdd: boolean, taken: ReadonlySet<string>): string {
  const pool = isOdd && pick(3) === 0 ? ODD_NAMES : WORDS;
  const name =
    pick(3) === 0
      ? `n${pick(1_000_000)
          .toString(36)
          .repeat(1 + pick(15))}`
      : (pool[pick(pool.length)] ?? '');
  return taken.has(name) ? `${name}${taken.size}x` : name;
}

/** Whether a document may not be compiled because of a name; in a variable, an underscore is nothing special. */
function isBarred(name: string, bare: string, canary: string): boolean {
  return name.length > 64 || name.startsWith('__') || (name.includes('_') && !bare.includes(`$${canary}`));
}

/** Puts something into a document that may not be compiled, where there is a place for it. */
function withFeature(document: string, pick: Pick): string {
  const line = JSON.stringify(text(pick));
  const block = `"""${text(pick).replaceAll(/["\\]/g, "'")}\n"""`;
  const literals = [
    line,
    block,
    `[${line}]`,
    `{${POISON}: ${block}}`,
    '1.5e3',
    `${POISON}Enum`,
    '[[1]]',
    '{a: {b: 1}}',
  ];
  const directives = ['@include(if: true)', '@skip(if: null)', `@${POISON}(reason: ${line})`, '@defer(label: "")'];
  const literal = literals[pick(literals.length)] ?? '';
  const directive = directives[pick(directives.length)] ?? '';
  const features: [at: RegExp, put: (found: string) => string][] = [
    [/(?<=\w: )\$\w+/g, () => literal],
    [/\$\w+: \w+!?(?=[,)])/g, (variable) => `${variable} = ${literal}`],
    [/\$\w+: \w+!?(?=[,)])/g, (variable) => `${variable} ${directive}`],
    [/(?<!\$)Canary\d+Z: \w+(?:\([^)]*\))?/g, (field) => `${field} ${directive}`],
    [/\.\.\.(?: on)? ?\w*/g, (fragment) => `${fragment} ${directive}`],
    [/^query \w+(?:\([^)]*\))?/g, (operation) => `${operation} ${directive}`],
    [/^query/g, (operation) => `${pick(2) === 0 ? line : block} ${operation}`],
  ];
  const [at, put] = features[pick(features.length)] ?? [/$/g, () => ''];
  const wanted = pick(document.match(at)?.length || 1);
  let index = 0;
  return document.replaceAll(at, (found) => (index++ === wanted ? put(found) : found));
}
