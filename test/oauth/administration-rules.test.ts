import { describe, expect, it } from 'vitest';
import {
  administrationRefusal,
  administratorOf,
  isRole,
  lastAdminRefusal,
  OPERATOR,
  type Standing,
} from '../../src/access/administration/administration.ts';
import type { Principal } from '../../src/access/identity/principal.ts';
import { Refusal } from '../../src/platform/errors.ts';

const OWN = 'aaaaaaaa-0000-4000-8000-00000000000a';
const OTHER = 'bbbbbbbb-0000-4000-8000-00000000000b';

function principal(settings: Partial<Principal>): Principal {
  return {
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
describe('who may administer', () => {
  it.each([
    ['in capitals', { clientId: OWN.toUpperCase() }],
    ['as the subject alone', { clientId: undefined, subject: OWN }],
    ['of the legacy class', { tokenClass: 'legacy' as const }],
  ])("D3-26: a client's own token is known %s", (_name, settings) => {
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
    ['is not disabled', { ...admin, status: 'disabled' }, [admin], stays],
    ['is not demoted', { ...admin, role: 'operator' }, [admin], stays],
    ['is not disabled beside a disabled one', { ...admin, status: 'disabled' }, [admin, gone], stays],
    ['is not demoted beside a viewer', { ...admin, role: 'viewer' }, [admin, viewer], stays],
    ['may have another password', admin, [admin], undefined],
    ['is none where there is another', { ...admin, status: 'disabled' }, [admin, second], undefined],
    ['is none where it is demoted beside another', { ...admin, role: 'viewer' }, [admin, second], undefined],
    ['is not a disabled one, who is demoted', { ...gone, role: 'viewer' }, [admin, gone], undefined],
    ['is not a viewer, who is disabled', { ...viewer, status: 'disabled' }, [admin, viewer], undefined],
    ['is not a viewer of a node without admins', { ...viewer, status: 'disabled' }, [viewer], undefined],
  ] as [string, Standing, Standing[], unknown][])('D3-26: %s', (_name, after, all, expected) => {
    expect(lastAdminRefusal(after, all)).toEqual(expected);
  });
});
