import { describe, expect, it } from 'vitest';
import {
  type AdministrativeChange,
  administrationRefusal,
  administratorOf,
  isRole,
  lastAdminRefusal,
  OPERATOR,
  type Standing,
  UNBOUND,
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

const GIVE: AdministrativeChange[] = ['create', 'replace', 'rotate', 'enable', 'set_password', 'set_role', 'unlock'];
const END: AdministrativeChange[] = ['disable', 'revoke_sessions'];
const weak = administratorOf(principal({}));
const api = administratorOf(principal({ tokenUse: 'api', subject: OWN }));

describe('who may administer', () => {
  it.each(GIVE)('D3-26, D3-30: to %s takes every scope of the target; the first that is missing is named', (change) => {
    expect(administrationRefusal(weak, change, { scopes: ['accounts:read'] })).toBeUndefined();
    expect(administrationRefusal(weak, change, { scopes: [] })).toBeUndefined();
    const scopes = ['accounts:read', 'audit:read', 'users:read'];
    expect(administrationRefusal(weak, change, { scopes })).toMatchObject({
      code: 'forbidden',
      details: { permission: 'audit:read' },
      message: 'the permission audit:read is missing',
    });
  });

  it.each(END)('D3-26: to %s takes clients:manage alone', (change) => {
    expect(administrationRefusal(weak, change, { scopes: ['audit:read', 'users:read'] })).toBeUndefined();
  });

  it.each([...GIVE, ...END])('D3-26: nobody may %s without clients:manage', (change) => {
    const by = administratorOf(principal({ permissions: new Set(['accounts:read']) }));
    expect(administrationRefusal(by, change, { scopes: [] })).toMatchObject({
      details: { permission: 'clients:manage' },
    });
  });

  it.each(['replace', 'rotate', 'enable', 'disable'] as const)(
    "D3-26: a client's own token may not %s that client, a login made through it may",
    (change) => {
      const target = { clientId: OWN, scopes: [] };
      expect(administrationRefusal(api, change, target)).toMatchObject({ code: 'forbidden' });
      expect(administrationRefusal(api, change, { ...target, clientId: OTHER })).toBeUndefined();
      expect(administrationRefusal(weak, change, target)).toBeUndefined();
    },
  );

  it.each(GIVE)("D3-30: to %s by a client's own token takes no freedom that the client has not", (change) => {
    const maker = { ...UNBOUND, monthly_limit: 5 };
    const freer = { scopes: [], bounds: UNBOUND };
    expect(administrationRefusal(api, change, freer, maker)).toMatchObject({
      code: 'forbidden',
      details: { permission: 'clients:manage' },
      message: "a client's own token gives nobody more freedom than it has: set a monthly limit within the maker's",
    });
    expect(administrationRefusal(api, change, { scopes: [] }, maker)).toMatchObject({
      message: "a client's own token gives nobody more freedom than it has: use a supervisor's login",
    });
    expect(administrationRefusal(api, change, { scopes: [], bounds: maker }, maker)).toBeUndefined();
    expect(administrationRefusal(api, change, freer, UNBOUND)).toBeUndefined();
    expect(administrationRefusal(weak, change, freer)).toBeUndefined();
  });

  it.each(END)('D3-30: to %s takes none', (change) => {
    expect(administrationRefusal(api, change, { scopes: [] }, { ...UNBOUND, monthly_limit: 5 })).toBeUndefined();
  });

  it.each([
    ['in capitals', { clientId: OWN.toUpperCase() }],
    ['as the subject alone', { clientId: undefined, subject: OWN }],
    ['of the legacy class', { tokenClass: 'legacy' as const }],
  ])("D3-26: a client's own token is known %s", (_name, settings) => {
    const by = administratorOf(principal({ tokenUse: 'api', ...settings }));
    expect(administrationRefusal(by, 'disable', { clientId: OWN, scopes: [] })).toMatchObject({ code: 'forbidden' });
  });

  it('D3-26: the operator may do everything', () => {
    for (const change of [...GIVE, ...END]) {
      expect(administrationRefusal(OPERATOR, change, { clientId: OWN, scopes: ['whatever'] })).toBeUndefined();
    }
  });

  it.each([
    ['admin', true],
    ['operator', true],
    ['viewer', true],
    ['Admin', false],
    ['root', false],
    ['', false],
    ['constructor', false],
  ])('D3-26: %j is a role: %s', (name, isOne) => {
    expect(isRole(name)).toBe(isOne);
  });
});

describe('the last active admin of a node', () => {
  const admin: Standing = { id: 'a', role: 'admin', status: 'active' };
  const second: Standing = { id: 'b', role: 'admin', status: 'active' };
  const gone: Standing = { id: 'c', role: 'admin', status: 'disabled' };
  const viewer: Standing = { id: 'd', role: 'viewer', status: 'active' };
  const stays = new Refusal('precondition_failed', { message: 'the last active admin of a node stays' });

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
