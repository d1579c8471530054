import { describe, expect, it } from 'vitest';
import {
  administrationRefusal,
  administratorOf,
  isRole,
  lastAdminRefusal,
  OPERATOR,
  type Standing,
} from '../../src/access/administration/administration.ts';
import type { Principal } from '../../src/access/identity/callers.ts';
import { Refusal } from '../../src/platform/errors.ts';

const OWN = 'aaaaaaaa-0000-4000-8000-00000000000a';
const OTHER = 'bbbbbbbb-0000-4000-8000-00000000000b';

function principal(settings: Partial<Principal>): Principal & { correlationId: string } {
  return {
    correlationId: 'c',
    tokenClass: 'user',
    tokenUse: 'login',
    subject: 'somebody',
    nodeId: OTHER,
    clientId: OWN,
    sessionId: undefined,
    tokenId: undefined,
    familyId: undefined,
    issuedAt: undefined,
    permissions: new Set(['clients:manage', 'accounts:read']),
    expiresAtMs: undefined,
    ...settings,
  };
}

/** What test/graphql/administration-rules.test.ts proves of each change is not repeated here. */
describe('permission to administer', () => {
  it.each([
    ['with the client id in capitals', { clientId: OWN.toUpperCase() }],
    ['with only a subject', { clientId: undefined, subject: OWN }],
    ['of the legacy class', { tokenClass: 'legacy' as const }],
  ])('D3-26: a client cannot disable itself with a token %s', (_name, settings) => {
    const by = administratorOf(principal({ tokenUse: 'api', ...settings }));
    expect(administrationRefusal(by, 'disable', { clientId: OWN, scopes: [] })).toMatchObject({ code: 'forbidden' });
  });

  it('D3-26: the operator may do everything', () => {
    const target = { clientId: OWN, scopes: ['whatever'] };
    expect(administrationRefusal(OPERATOR, 'replace', target)).toBeUndefined();
    expect(administrationRefusal(OPERATOR, 'set_role', target)).toBeUndefined();
  });

  it('D3-26: there are three roles', () => {
    const names = ['admin', 'operator', 'viewer', 'Admin', 'root', '', 'constructor'];
    expect(names.filter(isRole)).toEqual(['admin', 'operator', 'viewer']);
  });
});

describe('the last active admin of a node', () => {
  const admin: Standing = { id: 'a', role: 'admin', status: 'active' };
  const second: Standing = { id: 'b', role: 'admin', status: 'active' };
  const gone: Standing = { id: 'c', role: 'admin', status: 'disabled' };
  const viewer: Standing = { id: 'd', role: 'viewer', status: 'active' };
  const stays = new Refusal('precondition_failed', {
    message: 'the last active admin of a tenant cannot be disabled or get another role',
  });

  it.each([
    ['cannot be disabled', { ...admin, status: 'disabled' }, [admin], stays],
    ['cannot be demoted', { ...admin, role: 'operator' }, [admin], stays],
    ['cannot be disabled when the other admin is disabled', { ...admin, status: 'disabled' }, [admin, gone], stays],
    ['cannot be demoted when there is only a viewer', { ...admin, role: 'viewer' }, [admin, viewer], stays],
    ['can change the password', admin, [admin], undefined],
    [
      'does not exist while there is a second admin, so one can be disabled',
      { ...admin, status: 'disabled' },
      [admin, second],
      undefined,
    ],
    [
      'does not exist while there is a second admin, so one can be demoted',
      { ...admin, role: 'viewer' },
      [admin, second],
      undefined,
    ],
    ['is not a disabled admin, who can be demoted', { ...gone, role: 'viewer' }, [admin, gone], undefined],
    ['is not a viewer, who can be disabled', { ...viewer, status: 'disabled' }, [admin, viewer], undefined],
    [
      'is not a viewer of a node without admins, who can be disabled',
      { ...viewer, status: 'disabled' },
      [viewer],
      undefined,
    ],
  ] as [string, Standing, Standing[], unknown][])('D3-26: %s', (_name, after, all, expected) => {
    expect(lastAdminRefusal(after, all)).toEqual(expected);
  });
});
