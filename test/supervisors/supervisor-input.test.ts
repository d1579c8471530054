import { describe, expect, it } from 'vitest';
import { camelInput } from '../../src/api/graphql/kit/builder.ts';
import { inputIssues } from '../../src/api/graphql/kit/resolvers.ts';
import { supervisorInput } from '../../src/features/supervisors/supervisor.input.ts';

const GOOD = { username: 'grace', password: 'x'.repeat(8), role: 'viewer' };

function issuesOf(given: object) {
  const { error } = camelInput(supervisorInput).safeParse(given);
  return error ? inputIssues(error) : [];
}

describe('the input of a supervisor', () => {
  it.each([
    ['an empty name', { username: '' }, 'username'],
    ['a blank name', { username: '  ' }, 'username'],
    ['a name of 256 characters', { username: 'x'.repeat(256) }, 'username'],
    ['U+0000 in the name', { username: 'a\0' }, 'username'],
    ['a lone surrogate in the name', { username: 'a\ud800' }, 'username'],
    ['a password of 7 characters', { password: 'x'.repeat(7) }, 'password'],
    ['a password of 7 characters beyond the first plane', { password: '🔑'.repeat(7) }, 'password'],
    ['a password of 1,025 characters', { password: 'x'.repeat(1_025) }, 'password'],
    ['U+0000 in the password', { password: `${'x'.repeat(8)}\0` }, 'password'],
    ['a lone surrogate in the password', { password: `${'x'.repeat(8)}\udc00` }, 'password'],
    ['an unknown role', { role: 'root' }, 'role'],
    ['a role in capitals', { role: 'ADMIN' }, 'role'],
  ])('DG-03, D3-26: %s is reported for its member', (_name, given, path) => {
    const issues = issuesOf({ ...GOOD, ...given });
    expect(issues.map((issue) => issue.path)).toEqual([[path]]);
    expect(issues[0]?.message).not.toBe('');
  });

  it.each([
    ['8 characters', { password: 'x'.repeat(8) }],
    ['1,024 characters of any plane', { password: '🔑'.repeat(1_024) }],
  ])('DG-03: passwords of %s are valid', (_name, given) => {
    expect(camelInput(supervisorInput).parse({ ...GOOD, ...given })).toEqual({ ...GOOD, ...given });
  });
});
