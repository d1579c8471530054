import { describe, expect, it } from 'vitest';
import { complaints } from '../support/architecture/lint-copy.ts';

const PATH = 'src/gateway/planted.ts';
const HEAD = 'const given: Record<string, unknown> = {};\n';

const REFUSED = {
  'an arrow function': 'given.end = () => 1;',
  'an asynchronous one': 'given.end = async (text: string) => text;',
  'one with a type and a call as a default': 'given.end = (text = String(1)): string => text;',
  'a function expression': "given['end'] = function end(): number {\n  return 1;\n};",
  'one behind a cast': 'given.end = ((text: string) => text) as unknown;',
};

const TAKEN = {
  'a function by its name': 'function end(): number {\n  return 1;\n}\ngiven.end = end;',
  'the result of a call': 'given.end = String(() => 1);',
};

describe('lint: closures stored on long-lived objects', () => {
  it('rejects a function literal that is assigned to a property, and accepts a named function', async () => {
    const files = (texts: Readonly<Record<string, string>>, from: string) =>
      Object.values(texts).map((text, index) => [PATH.replace('planted', `${from}-${index}`), `${HEAD}${text}\n`]);
    const refused = Object.fromEntries(files(REFUSED, 'refused'));
    const found = await complaints({ ...refused, ...Object.fromEntries(files(TAKEN, 'taken')) });
    const ours = found.filter(({ message }) => message.startsWith('Assign a named function'));
    expect(ours.map(({ file }) => file).sort()).toEqual(Object.keys(refused).sort());
  });
});
