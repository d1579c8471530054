import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  clauseIds,
  disagreements,
  namedClauses,
  parsePage,
  readTests,
  syncPage,
} from '../support/contract/contract-page.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/contract.md'), 'utf8');

/** A page of two clauses in one section; `proof` is that of the first. */
function smallPage({ proof = 'not yet', count = 2, total = 2, more = '' } = {}): string {
  return `There are **${total} clauses**.

| section | clauses |
|---|---|
| 1 Gateway | ${count} |

## 1 Gateway

| id | guarantee | proof |
|---|---|---|
| 1-01 | Stages run in order. | ${proof} |
| D2-01 | Nothing else is reachable. | not yet |
${more}`;
}

const file = 'test/gateway/order.test.ts';
const linked = `[${file}](../${file})`;
const proves = new Map([[file, "it('1-01: the stages run in order', () => {});"]]);
const provesNothing = new Map([[file, "it('starts', () => {});"]]);

describe('the contract page', () => {
  const tests = readTests(root);

  it('agrees with the tests', () => {
    expect(disagreements(page, tests)).toEqual([]);
  });

  it('names a test of npm test for every proved clause', () => {
    const proved = parsePage(page).clauses.filter(({ files }) => files.length > 0);
    expect(proved.filter(({ files }) => files.every((file) => /^test\/(?:long|attacks)\//.test(file)))).toEqual([]);
  });

  it('holds 311 clauses', () => {
    expect(parsePage(page).clauses.length).toBe(311);
    expect(parsePage(page).total).toBe(311);
  });
});

describe('disagreements', () => {
  it('reports nothing for a correct page', () => {
    expect(disagreements(smallPage({ proof: linked }), proves)).toEqual([]);
    expect(disagreements(smallPage({ proof: `${linked}; not yet: upstreams` }), proves)).toEqual([]);
    expect(disagreements(smallPage(), provesNothing)).toEqual([]);
  });

  it.each([
    {
      fault: 'an id in a test that is not on the page',
      text: smallPage(),
      tests: new Map([[file, "describe('D2-77: unheard of', () => {});"]]),
      found: [`${file} names D2-77, which is not on the page`],
    },
    {
      fault: 'a proof whose file is missing',
      text: smallPage({ proof: linked }),
      tests: new Map<string, string>(),
      found: [`1-01: ${file} does not exist`],
    },
    {
      fault: 'a proof whose file does not name the clause',
      text: smallPage({ proof: linked }),
      tests: provesNothing,
      found: [`1-01: ${file} has no test that names it`],
    },
    {
      fault: 'a clause that a test names and the page denies',
      text: smallPage({ proof: 'not yet; in work' }),
      tests: proves,
      found: [`1-01 is "not yet", but ${file} names it`],
    },
    {
      fault: 'a duplicate id',
      text: smallPage({ count: 3, total: 3, more: '| 1-01 | Stages run in order. | not yet |' }),
      tests: provesNothing,
      found: ['1-01 stands on the page twice'],
    },
    {
      fault: 'a section whose length differs from its count in the head',
      text: smallPage({ count: 3 }),
      tests: provesNothing,
      found: ['1 Gateway: 2 clauses, the head says 3'],
    },
    {
      fault: 'a section that the head leaves out',
      text: smallPage({ total: 3, more: '\n## 9 Versions\n\n| 9-01 | Prefixes are served. | not yet |' }),
      tests: provesNothing,
      found: ['9 Versions: 1 clauses, the head says undefined'],
    },
    {
      fault: 'a total that differs from the head',
      text: smallPage({ total: 262 }),
      tests: provesNothing,
      found: ['2 clauses in all, the head says 262'],
    },
    ...['soon', '', linked.replace('](', '](../'), `${linked};`, `${linked} ${linked}`].map((proof) => ({
      fault: `a proof written as "${proof}"`,
      text: smallPage({ proof, count: 1, total: 1 }),
      tests: provesNothing,
      found: [`not a row of the page's form: | 1-01 | Stages run in order. | ${proof} |`],
    })),
    {
      fault: 'an id of an unknown form',
      text: smallPage({ more: '| 1-1 | Stages run in order. | not yet |' }),
      tests: provesNothing,
      found: ["not a row of the page's form: | 1-1 | Stages run in order. | not yet |"],
    },
  ])('reports $fault', ({ text, tests, found }) => {
    expect(disagreements(text, tests)).toEqual(found);
  });
});

describe('syncPage', () => {
  const second = 'test/gateway/chain.test.ts';

  it('lists the files that name a clause in order of their paths, and keeps the remark', () => {
    const tests = new Map([...proves, [second, "test('1-01: in order again', () => {});"]]);
    const synced = smallPage({ proof: `[${second}](../${second}), ${linked}; not yet: upstreams; streams` });
    expect(syncPage(smallPage({ proof: `${linked}; not yet: upstreams; streams` }), tests)).toBe(synced);
    expect(disagreements(synced, tests)).toEqual([]);
  });

  it('says "not yet" where no test is left, and keeps the remark', () => {
    expect(syncPage(smallPage({ proof: linked }), provesNothing)).toBe(smallPage());
    const remarked = smallPage({ proof: `${linked}; not yet: upstreams` });
    expect(syncPage(remarked, provesNothing)).toBe(smallPage({ proof: 'not yet; not yet: upstreams' }));
  });

  it('leaves a line it does not understand for the check to report', () => {
    const broken = smallPage({ proof: 'soon' });
    expect(syncPage(broken, proves)).toBe(broken);
  });
});

describe('clauseIds', () => {
  it.each([
    ['D6-02: rank goes before time', ['D6-02']],
    ['1-01, D2-02 and DG-04: order', ['1-01', 'D2-02', 'DG-04']],
    ['2.6-05 2.6-14: bounds', ['2.6-05', '2.6-14']],
    ['the join is total (D6-02)', ['D6-02']],
    ['8-02: a limit in 1-10 or 1-100', ['8-02']],
    ['a range of 1-10 rows', []],
    ['2.7-07: 2026-11-21T10-02', ['2.7-07']],
    ['version 1.2.1-05 and AD3-01', []],
  ])('reads "%s"', (name, found) => {
    expect(clauseIds(name)).toEqual(found);
  });
});

describe('namedClauses', () => {
  it.each([
    ['a plain name', "it('D6-02: x', () => {})", ['D6-02']],
    ['a template with a computed part', `test(\`D6-02: \${kind}\`, () => {})`, ['D6-02']],
    ['a name put together', "it('D6-02: ' + kind, () => {})", ['D6-02']],
    ['a nested suite', "describe('6-01: x', () => { it('D6-02: y', () => {}) })", ['6-01', 'D6-02']],
    ['modifiers', "it.skipIf(off).each([1])('D6-02: %s', () => {})", ['D6-02']],
    ['a wrapper', "itOnPostgres('D6-02: x', () => {})", ['D6-02']],
    ['a table in place', "it.each([['2.6-05', 0], ['2.6-14', 1]])('%s: %i', () => {})", ['2.6-05', '2.6-14']],
    ['a table of objects', "it.for([{ id: '1-01', rows: 2 }])('$id: x', () => {})", ['1-01']],
    ['a table held in a constant', "const t = ['8-01'] as const; it.each(t)('%s: x', () => {})", ['8-01']],
    ['a table written as a template', `it.each\`id\n\${'8-01'}\`('$id: x', () => {})`, ['8-01']],
    ['a loop', `for (const id of ['8-01']) it(\`\${id}: x\`, () => {})`, ['8-01']],
    ['forEach', `['8-01'].forEach((id) => it(\`\${id}: x\`, () => {}))`, ['8-01']],
    ['a table with its own name', "it.each(['1-10'])('8-01: page %s', () => {})", ['8-01']],
    ['a skipped suite', "describe.skip('6-01: x', () => { it('D6-02: y', () => {}) })", []],
    ['a todo test', "it.todo('D6-02: x', () => {})", []],
    ['comments', "// it('D6-02: x', () => {})", []],
    ['other calls and strings', "check('D6-02: x', () => {}); const s = `it('D6-02: x', f)`", []],
    ['types', "it('D6-02: x', async (): Promise<void> => { const a = b as unknown as C; })", ['D6-02']],
  ])('reads the ids of %s', (_case, source, found) => {
    expect([...namedClauses(source).keys()]).toEqual(found);
  });

  it('rejects a file that does not parse', () => {
    expect(() => namedClauses("it('D6-02: x', () => {")).toThrow();
  });
});
