import type { ComponentChildren as Content } from 'preact';
import { html } from './html.ts';
import type { IconName } from './kit/icons.ts';

/** A view: the first part of its path, what it needs, and its module, which is loaded when the view is opened. */
export interface View {
  path: string;
  title: string;
  icon?: IconName;
  /** The permissions without which it shows nothing. */
  needs: readonly string[];
  /** The view whose item is marked in the navigation, for a view that has no item there. */
  under?: string;
  load(): Promise<ViewModule>;
}

export interface ViewModule {
  /** Returns the content for the parts of the path behind the first; undefined: there is no such page. */
  show(...parts: string[]): Content;
}

/** The items of the navigation, by group. */
export const GROUPS: Readonly<Record<string, readonly View[]>> = {
  '': [{ path: 'overview', title: 'Overview', icon: 'overview', needs: [], load: () => import('./views/overview.ts') }],
  Operations: [
    { path: 'transactions', title: 'Transactions', icon: 'transactions', needs: ['transactions:read'], load: () => import('./views/transactions.ts') },
    { path: 'rules', title: 'Rules', icon: 'rules', needs: ['wallet-rules:read'], load: () => import('./views/rules.ts') },
    { path: 'gas-fees', title: 'Gas fees', icon: 'fuel', needs: ['wallets:read'], load: () => reference('GasFeesPage') },
  ],
  Directory: [
    { path: 'accounts', title: 'Accounts', icon: 'accounts', needs: ['accounts:read'], load: () => import('./views/accounts.ts') },
    { path: 'users', title: 'Users', icon: 'users', needs: ['users:read'], load: () => import('./views/users.ts') },
    { path: 'migrations', title: 'User migrations', icon: 'imports', needs: ['users:read'], load: () => import('./views/migrations.ts') },
    { path: 'assets', title: 'Assets', icon: 'assets', needs: ['tokens:read'], load: () => reference('AssetsPage') },
    { path: 'networks', title: 'Networks', icon: 'networks', needs: ['wallets:read'], load: () => reference('NetworksPage') },
  ],
  Administration: [
    { path: 'clients', title: 'Clients', icon: 'clients', needs: ['clients:manage'], load: () => import('./views/clients.ts') },
    { path: 'supervisors', title: 'Supervisors', icon: 'supervisors', needs: ['clients:manage'], load: () => import('./views/supervisors.ts') },
    { path: 'audit', title: 'Audit', icon: 'audit', needs: ['audit:read'], load: () => import('./views/audit.ts') },
  ],
};

/** Views without an item in the navigation. */
const OTHERS: readonly View[] = [
  { path: 'wallets', title: 'Wallet', needs: ['wallets:read', 'wallet-rules:read'], under: 'accounts', load: () => import('./views/wallets.ts') },
  { path: 'wallets/rules', title: 'Rule', needs: ['wallets:read', 'wallet-rules:read'], under: 'rules', load: () => import('./views/rules.ts') },
  { path: 'profile', title: 'My password and sessions', needs: [], load: () => import('./views/profile.ts') },
];

const VIEWS = [...Object.values(GROUPS).flat(), ...OTHERS];

/** Returns the view of a path: by its first part, or by that and the third as in `wallets/:id/rules`. Undefined where there is none. */
export function viewAt([first, , third]: readonly string[]): View | undefined {
  return VIEWS.find(({ path }) => path === `${first}/${third}`) ?? VIEWS.find(({ path }) => path === first);
}

/** Returns the view that opens first: the first one that a person with these permissions may see. */
export function firstView(permissions: readonly string[]): View | undefined {
  return VIEWS.find(({ needs }) => needs.every((permission) => permissions.includes(permission)));
}

/** Returns a view that is one table of reference data. */
async function reference(page: 'NetworksPage' | 'AssetsPage' | 'GasFeesPage'): Promise<ViewModule> {
  const { [page]: Table } = await import('./views/reference.ts');
  return { show: (...parts) => (parts.length <= (page === 'AssetsPage' ? 1 : 0) ? html`<${Table} id=${parts[0]} />` : undefined) };
}
