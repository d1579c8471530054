import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { breakingChanges, changelogSince, unnamedChanges } from '../../scripts/breaking-changes.ts';
import { schemaHistory } from '../../scripts/schema-history.ts';

const SCHEMA = `
directive @old on FIELD
interface Named { name: String! }
type Account implements Named { id: ID!, name: String!, status: Int }
type User { id: ID! }
type Gone { id: ID! }
union Result = Account | User
enum Status { ACTIVE DISABLED }
input Filter { name: String }
type Query { account(id: ID!, deep: Boolean): Account, find(filter: Filter): Result, gone: Gone, status: Status }
`;

/** What is changed, by which text for which, and the coordinate that must be named. */
const BREAKING: [what: string, from: string, to: string, coordinate: string][] = [
  ['a field is removed', 'id: ID!, name: String!, status', 'id: ID!, name: String!, state: Int, s', 'Account.status'],
  ['an argument is removed', ', deep: Boolean', '', 'Query.account(deep:)'],
  ['a required argument comes', 'deep: Boolean', 'deep: Boolean, far: Int!', 'Query.account(far:)'],
  ['an enum value is removed', 'ACTIVE DISABLED', 'ACTIVE', 'Status.DISABLED'],
  ['a member of a union is removed', 'Account | User', 'Account', 'Result.User'],
  ['a type is removed', 'gone: Gone, ', '', 'Query.gone'],
  ['a type changes its kind', 'enum Status { ACTIVE DISABLED }', 'scalar Status', 'Status'],
  ['a directive is removed', 'directive @old on FIELD', '', '@old'],
];
const changed = (from: string, to: string) => SCHEMA.replace(from, to);

describe('breaking changes', () => {
  it.each(BREAKING)('DG-01: %s: rejected unless the changelog names it', (_what, from, to, coordinate) => {
    const changes = breakingChanges(SCHEMA, changed(from, to));
    expect(changes.map((change) => change.coordinate)).toContain(coordinate);
    const unnamed = (text: string) => unnamedChanges(changes, text).map((change) => change.coordinate);
    expect(unnamed('')).toContain(coordinate);
    expect(unnamed(`- \`${coordinate}\` is another thing.`)).not.toContain(coordinate);
    expect(unnamed(`- ${coordinate}.`)).not.toContain(coordinate);
    for (const other of [`${coordinate}s`, `My${coordinate}`, `${coordinate}.name`, `x.${coordinate}`]) {
      expect(unnamed(other)).toContain(coordinate);
    }
  });

  it.each([
    ['a type and a field', 'status: Int', 'status: Int, more: More } type More { id: ID!'],
    ['an optional argument', 'deep: Boolean', 'deep: Boolean, far: Int'],
    ['a deprecation', 'status: Int', 'status: Int @deprecated(reason: "by state")'],
    ['a description', 'type User', '"A person." type User'],
  ])('DG-01: %s is not a breaking change', (_what, from, to) => {
    expect(breakingChanges(SCHEMA, changed(from, to))).toEqual([]);
  });

  it('DG-01: count as named only above the versions that existed before', () => {
    const log = (top: string) => `# Changelog\n\nA.b\n\n## [Unreleased]\n\n${top}## [0.1.0]\n\nAccount.old\n`;
    expect(changelogSince(log('Account.now\n'), log(''))).toBe('\n## [Unreleased]\n\nAccount.now');
    expect(changelogSince(log('## [0.2.0]\n\nAccount.now\n'), log(''))).toContain('Account.now');
    expect(changelogSince(log(''), log(''))).not.toContain('Account.old');
  });
});

describe('the history of a repository', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'portcullis-history-'));
    mkdirSync(join(root, 'schema'));
    git('init', '-q');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function git(...args: string[]): string {
    const settings = ['user.name=t', 'user.email=t@example.com', 'commit.gpgsign=false', 'core.hooksPath=/dev/null'];
    return execFileSync('git', [...settings.flatMap((setting) => ['-c', setting]), ...args], {
      ...{ cwd: root, encoding: 'utf8' },
    });
  }

  function write(schema: string, unreleased = '', versions = '\n## [0.1.0] - 2026-11-22\n'): void {
    writeFileSync(join(root, 'schema/schema.graphql'), schema);
    writeFileSync(join(root, 'CHANGELOG.md'), `# Changelog\n\n## [Unreleased]\n${unreleased}${versions}`);
  }

  function commit(...content: Parameters<typeof write>): void {
    write(...content);
    git('add', '.');
    git('commit', '-q', '--allow-empty', '-m', 'change');
  }

  const without = changed('ACTIVE DISABLED', 'ACTIVE');
  const named = '\n### Breaking\n\n- `Status.DISABLED` is no more.\n';
  const refused = [expect.stringMatching(/^Status\.DISABLED: Enum value Status\.DISABLED was removed\./)];

  it('DG-01: a breaking change is rejected in its commit and later ones until a release names it', () => {
    commit(SCHEMA);
    expect(schemaHistory(root)).toEqual({ compared: [], faults: [] });
    commit(without);
    expect(schemaHistory(root)).toEqual({ compared: [expect.any(String)], faults: refused });
    commit(without);
    expect(schemaHistory(root).faults).toEqual(refused);
    commit(without, named);
    expect(schemaHistory(root)).toEqual({ compared: [expect.any(String), expect.any(String)], faults: [] });
    commit(without, '', `\n## [0.2.0] - 2026-12-01\n${named}\n## [0.1.0] - 2026-11-22\n`);
    expect(schemaHistory(root).faults).toEqual([]);
    commit(changed('ACTIVE DISABLED', 'OTHER'), '', `\n## [0.2.0] - 2026-12-01\n${named}\n## [0.1.0] - 2026-11-22\n`);
    expect(schemaHistory(root).faults).toEqual([expect.stringContaining('Status.ACTIVE')]);
  });

  it('DG-01: an element added and removed between two releases is a breaking change against the previous commit', () => {
    commit(changed('ACTIVE DISABLED', 'ACTIVE'));
    commit(SCHEMA);
    commit(without);
    expect(schemaHistory(root).faults).toEqual(refused);
  });

  it('DG-01: an uncommitted breaking change is rejected too', () => {
    commit(SCHEMA);
    write(without);
    expect(schemaHistory(root).faults).toEqual(refused);
  });
});
