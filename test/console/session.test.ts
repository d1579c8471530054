import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { RevokeSessionsDocument } from '../graphql/generated/graphql.ts';
import {
  accountOf,
  beginSignedOut,
  expectQuiet,
  goTo,
  openConsole,
  SOON,
  shown,
  signIn,
  signOut,
  tryToSignIn,
  useConsole,
} from '../support/console/console-page.ts';
import { createdClient, createdSupervisor, operate, PASSWORD, tokenStatus } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const p = useConsole();
/** The page of the cases that have no clock of their own. */
const open = beforeTests(() => openConsole(p));

/** The page, its document loaded anew and nothing kept: nobody is signed in. */
async function anew(): Promise<Page> {
  const { page } = open;
  await page.unrouteAll();
  await page.evaluate('localStorage.clear()');
  await page.context().clearCookies();
  await page.goto(`${p.url}/console/`);
  await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
  open.forget();
  return page;
}

/** All that a browser may keep of a page. */
async function kept(page: Page): Promise<unknown> {
  const stored = await page.evaluate(
    '(async () => [{ ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys(), name, history.state, location.search])()',
  );
  return [...(stored as unknown[]), await page.context().cookies()];
}

const NOTHING = [{}, {}, [], [], '', null, '', []];

/** The tokens that the page was given, and those that it sent. */
function tokensOf(page: Page) {
  const seen = { given: [] as string[], asked: 0, sent: new Set<string>() };
  page.on('request', (request) => {
    if (/\/(?:token|session|renew)$/.test(request.url())) seen.asked += 1;
    const [, token] = /^Bearer (.+)/.exec(request.headers().authorization ?? '') ?? [];
    if (token !== undefined) seen.sent.add(token);
  });
  page.on('response', async (response) => {
    if (!/\/(?:token|session|renew)$/.test(response.url()) || response.status() !== 200) return;
    // A reload takes the body of an earlier response away.
    const answer = await response.json().catch(() => undefined);
    if (answer) seen.given.push(answer.access_token);
  });
  return seen;
}

/** A supervisor of a role of their own. */
async function supervisorOf(role: string) {
  const username = `${role}-${Math.random().toString(36).slice(2)}`;
  const { id } = await createdSupervisor(p, await p.clientToken(), { username, role });
  const { client, console_client_id } = p.demo;
  return { id, client, console_client_id, supervisor: { username, password: PASSWORD } };
}

/** A rule that is active, and a migration that runs. */
async function changeable() {
  const { node_id, wallet_id, network_id, network_currency_id } = p.demo;
  const rows = p.service.context.database.db.unscoped('test');
  const [ruleId, migrationId, created_at] = [randomUUID(), randomUUID(), '2026-11-21T10:30:00Z'];
  const of = { node_id, wallet_id, network_id, network_currency_id, created_at, updated_at: created_at };
  const limit = { max_amount: '1', time_period: 'day' as const, time_period_value: 1 };
  const rule = { name: 'Limit', type: 'permissionless_transfer_limit' as const };
  await rows.run((k) =>
    k.insertInto('wallet_rules').values({ id: ruleId, ...of, ...rule, permissionless_transfer_limit_rule: limit }),
  );
  const running = { status: 'running' as const, total: 1, success: 0, skipped: 0, failed: 0 };
  await rows.run((k) =>
    k.insertInto('migrations').values({ id: migrationId, node_id, ...running, created_by: 'somebody', created_at }),
  );
  return { ruleId, migrationId };
}

const ACTIONS = /^(?:New rule|(?:Disable|Activate) the rule|Import users|Cancel migration|Correct here|Erase user)$/;

describeReal('chromium', 'the session of the console', () => {
  it('D3-40: begins with a link, a username and a password, survives a reload, and keeps no secret readable by scripts', async () => {
    const page = await anew();
    const clientId = p.demo.console_client_id;
    await page.goto(`${p.url}/console/?client=${clientId}`);
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    const seen = tokensOf(page);
    await page.getByText('for Demo', { exact: true }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.name'), SOON).toBe('username');
    const { username, password } = p.demo.supervisor;
    await page.keyboard.type(username);
    await page.keyboard.press('Tab');
    await page.keyboard.type(password);
    await page.keyboard.press('Enter');
    const account = page.locator('.side .opener[aria-haspopup]');
    await expect.poll(() => account.innerText(), SOON).toBe(`${username}\nDemo`);
    const stored = { 'portcullis.client_id': clientId, 'portcullis.session': clientId };
    const cookie = { name: `portcullis-${clientId}`, httpOnly: true, sameSite: 'Strict', path: '/console/session' };
    expect(await kept(page)).toMatchObject([stored, ...NOTHING.slice(1, 6), `?client=${clientId}`, [cookie]]);
    expect(open.complaints).toEqual([]);
    const before = seen.given.length;
    await page.goto(`${p.url}/console/#/accounts`);
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor();
    expect(await account.innerText()).toBe(`${username}\nDemo`);
    await expect.poll(() => seen.given.length, SOON).toBeGreaterThan(before);
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(open.complaints).toEqual([]);
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    await expect.poll(() => kept(page), SOON).toEqual([{ 'portcullis.client_id': clientId }, ...NOTHING.slice(1)]);
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.name'), SOON).toBe('username');
    expect(open.complaints).toEqual([]);
  });

  it('D3-40: continues in two tabs that renew at the same time, and ends in both after a sign-out', async () => {
    await using own = await openConsole(p);
    const { page } = own;
    await page.clock.install();
    await signIn(page, p.demo);
    const other = await page.context().newPage();
    await other.goto(`${p.url}/console/`);
    await accountOf(other).waitFor({ state: 'attached' });
    const tabs = [page, other];
    for (const place of ['#/accounts', '#/audit', '#/migrations']) {
      // The tabs have one clock.
      await page.clock.fastForward(15 * 60_000);
      await Promise.all(tabs.map((tab) => goTo(tab, place)));
      await other.keyboard.press('Shift');
    }
    for (const tab of tabs) expect(await accountOf(tab).count()).toBe(1);
    // A click in a background tab, which the browser does not draw, would take two seconds.
    await page.bringToFront();
    await signOut(page);
    await other.getByText('Your session was revoked or has expired').waitFor();
  });

  it('D3-40: has ended in a page restored by Back after another tab signed out', async () => {
    const page = await beginSignedOut(open);
    await signIn(page, p.demo);
    await page.evaluate(`localStorage.removeItem('portcullis.session');
      dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));`);
    await page.getByText('Your session was revoked or has expired').waitFor();
  });

  it('D3-40: ends in a tab, and only there, when somebody else signs in in another tab', async () => {
    await using own = await openConsole(p);
    const { page } = own;
    const { id: _id, ...other } = await supervisorOf('viewer');
    const tab = await page.context().newPage();
    await tab.goto(`${p.url}/console/`);
    const seen = tokensOf(page);
    await page.bringToFront();
    await signIn(page, p.demo);
    await goTo(page, '#/profile');
    await tab.bringToFront();
    await signIn(tab, other);
    const before = [...seen.sent];
    await page.evaluate("location.hash = '#/accounts'");
    await page.getByText('Somebody else has signed in with this browser.').waitFor();
    expect([...seen.sent]).toEqual(before);
    await tab.reload();
    await expect.poll(() => accountOf(tab).innerText(), SOON).toBe(`${other.supervisor.username}\nDemo`);
    await goTo(tab, '#/accounts');
    expect(await accountOf(tab).count()).toBe(1);
  });

  it('D3-40: a sign-out that does not reach the server is reported', async () => {
    for (const status of inTurn([0, 503], 2, 0)) {
      const page = await beginSignedOut(open);
      await signIn(page, p.demo);
      await page.route('**/console/session', (route) => (status ? route.fulfill({ status }) : route.abort()));
      await signOut(page);
      await page.getByText('The server could not end your session.').waitFor();
    }
  });

  it('D3-40: ends after thirty minutes without use, after a countdown', async () => {
    await using own = await openConsole(p);
    const { page } = own;
    await page.clock.install();
    // Timers that were set before run by the real clock.
    await page.reload();
    await signIn(page, p.demo);
    await page.clock.fastForward(28.2 * 60_000);
    await page.clock.runFor(6_000);
    await page.getByText(/You will be signed out, .* 1:\d\d/).waitFor();
    await page.getByRole('button', { name: 'Stay signed in' }).click();
    await page.clock.runFor(6_000);
    expect(await page.getByText('You will be signed out').count()).toBe(0);
    await page.clock.fastForward(31 * 60_000);
    await page.clock.runFor(6_000);
    await page.getByText('You were signed out after 30 minutes without use.').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
  });

  it('begins with an API client only, stores nothing in the browser, and ends with a reload', async () => {
    const page = await anew();
    await signIn(page, { client: p.demo.client });
    expect(await page.locator('.side .opener[aria-haspopup]').innerText()).toBe('API client\nDemo');
    expect(await kept(page)).toEqual(NOTHING);
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    expect(await page.getByLabel('Client id', { exact: true }).inputValue()).toBe('');
  });

  it('begins in a browser that refuses to store anything', async () => {
    const page = await anew();
    await page.evaluate(() => {
      const refuse = () => {
        throw new DOMException('refused', 'SecurityError');
      };
      Object.defineProperty(window, 'localStorage', { configurable: true, get: refuse });
    });
    await signIn(page, p.demo);
    expect(await page.locator('.side .opener[aria-haspopup]').innerText()).toBe('admin\nDemo');
    await page.reload();
  });

  it('begins with values that a password manager fills in at once', async () => {
    const { supervisor, console_client_id: clientId } = p.demo;
    const page = await anew();
    await page.evaluate(`for (const [name, text] of Object.entries(${JSON.stringify({ clientId, ...supervisor })})) {
      const input = document.querySelector('input[name=' + name + ']');
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    }`);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await accountOf(page).waitFor();
  });

  it('does not begin with a wrong id, secret or password; the page says which, and accepts the right one', async () => {
    const page = await anew();
    const { client, supervisor, console_client_id } = p.demo;
    const refused = page.getByRole('alert');
    await tryToSignIn(page, { client: { ...client, client_secret: 'wrong' } });
    expect(await refused.innerText()).toMatch(/client id or its secret is wrong/i);
    await tryToSignIn(page, { client, supervisor, console_client_id: client.client_id });
    await expect.poll(() => refused.innerText(), SOON).toMatch(/not one of a console/i);
    await tryToSignIn(page, { client, console_client_id, supervisor: { ...supervisor, password: 'wrong' } });
    await expect.poll(() => refused.innerText(), SOON).toMatch(/password is wrong/i);
    let attempts = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/console/session')) attempts += 1;
    });
    // A key that is held down sends once.
    await page.getByLabel('Password').focus();
    await page.keyboard.down('Enter');
    await expect.poll(() => attempts, SOON).toBe(1);
    await refused.waitFor();
    for (let repeated = 0; repeated < 3; repeated += 1) await page.keyboard.down('Enter');
    await page.evaluate('new Promise(requestAnimationFrame)');
    expect(attempts).toBe(1);
    await page.keyboard.up('Enter');
    expect(await kept(page)).toEqual(NOTHING);
    await signIn(page, p.demo);
  });

  it('renews its tokens before they expire, once for all requests that need them', async () => {
    const made = await createdClient(p, await p.clientToken(), {
      scopes: ['transactions:read', 'accounts:read'],
      tokenExpiry: { enabled: true, duration: 40 },
    });
    await using own = await openConsole(p);
    const { page } = own;
    const seen = tokensOf(page);
    await page.clock.install();
    await signIn(page, { client: made.credentials });
    await expect.poll(() => shown(page, '.link'), SOON).toContain('Live');
    expect(seen.asked).toBe(1);
    await page.clock.fastForward(15_000);
    const id = p.demo.transactions.token_transactions;
    await goTo(page, `#/transactions/${id}`);
    await page.locator(`.id[title="${id}"]`).waitFor();
    expect(seen.asked).toBe(2);
    await expect.poll(() => seen.sent.has(seen.given[1] ?? ''), SOON).toBe(true);
  });

  it('ends by signing out: its tokens stop working, and nothing of it stays in the browser', async () => {
    const page = await beginSignedOut(open);
    const seen = tokensOf(page);
    await signIn(page, p.demo);
    await goTo(page, '#/accounts?search=Acme');
    const [token = ''] = seen.sent;
    expect(await tokenStatus(p, token)).toBe(200);
    const [cookie] = await page.context().cookies();
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    await expect.poll(() => tokenStatus(p, token), SOON).toBe(401);
    const json = { client_id: p.demo.console_client_id };
    const headers = { 'sec-fetch-site': 'same-origin', cookie: `${cookie?.name}=${cookie?.value}` };
    expect((await p.call('POST', '/console/session/renew', { json, headers })).status).toBe(401);
    expect(new URL(page.url()).hash).toMatch(/^(#\/?)?$/);
    const { client, supervisor } = p.demo;
    const text = await page.evaluate<string>('document.documentElement.outerHTML');
    for (const secret of [token, client.client_secret, supervisor.password, supervisor.username, 'Acme']) {
      expect(text).not.toContain(secret);
    }
    expect(open.complaints).toEqual([]);
  });

  it('does not retry a request of the former session with the token of the new one', async () => {
    const page = await beginSignedOut(open);
    await signIn(page, p.demo);
    const arrived = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<void>();
    const sent: (string | undefined)[] = [];
    await page.route('**/graphql', async (route) => {
      const { authorization } = route.request().headers();
      if (!route.request().postData()?.includes('{ late }')) return route.fallback();
      sent.push(authorization);
      arrived.resolve();
      await refused.promise;
      await route.fulfill({ status: 401, json: {} });
    });
    const told = page.evaluate(
      `import(new URL('api.ts', document.querySelector('script[src]').src)).then(({ ask }) => ask('{ late }', {})).catch(({ message }) => message)`,
    );
    await arrived.promise;
    await signOut(page);
    await signIn(page, { client: p.demo.client });
    refused.resolve();
    expect(await told).toBe('You are signed out.');
    expect(sent).toHaveLength(1);
    expect(await page.locator('.side .opener[aria-haspopup]').innerText()).toBe('API client\nDemo');
  });

  it('that was revoked elsewhere is shown as ended, and leads through the sign-in back to the view and what was typed', async () => {
    const { id, ...credentials } = await supervisorOf('operator');
    const page = await anew();
    await signIn(page, credentials);
    await goTo(page, `#/wallets/${p.demo.wallet_id}/rules/new`);
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('Half of a rule');
    await operate(p, await p.clientToken(), RevokeSessionsDocument, { supervisorId: id });
    await page.getByLabel('Type', { exact: true }).selectOption('permissionless_transfer_limit');
    await page.getByLabel('Maximum').fill('1');
    await page.getByRole('combobox', { name: 'Network' }).fill(p.demo.network_id);
    await page.getByRole('combobox', { name: 'Currency of the rule' }).fill(p.demo.network_currency_id);
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    expect(await shown(page)).toContain('Your session was revoked or has expired.');
    await signIn(page, credentials);
    await expect.poll(() => name.inputValue(), SOON).toBe('Half of a rule');
    await page.getByText('Not saved yet.').waitFor();
    expect(await shown(page)).not.toContain('Your session was revoked or has expired');
    await signOut(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();
    await signIn(page, credentials);
    await goTo(page, `#/wallets/${p.demo.wallet_id}/rules/new`);
    expect(await name.inputValue()).toBe('');
  });

  it('names the missing permission of a view, and neither shows its actions nor requests its data', async () => {
    const { ruleId, migrationId } = await changeable();
    const { id: _, ...credentials } = await supervisorOf('viewer');
    const page = await anew();
    const documents = open.loads();
    await signIn(page, credentials);
    await goTo(page, '#/audit');
    await expect.poll(() => shown(page), SOON).toContain('you do not have the permission audit:read');
    const wallet = `#/wallets/${p.demo.wallet_id}`;
    const views: [place: string, heading: RegExp, lacking: string][] = [
      [wallet, /^Wallet on/, 'wallet-rules:write'],
      [`${wallet}/rules/${ruleId}`, /^Limit$/, 'wallet-rules:write'],
      ['#/migrations', /^User migrations$/, 'users:migrate'],
      [`#/migrations/${migrationId}`, /^Import: [\d,]+ rows?, /, 'users:migrate'],
    ];
    // In a quick run the views of one rule and of one migration, which have the most actions.
    for (const [place, heading, lacking] of inTurn(views, 2, 1)) {
      await goTo(page, place);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      await expect.poll(() => shown(page), SOON).toContain(lacking);
      expect(await page.getByRole('main').getByText(ACTIONS).count()).toBe(0);
      expect(await page.locator('main form :is(input, select, button):enabled').count()).toBe(0);
    }
    await signOut(page);
    const made = await createdClient(p, await p.clientToken(), { scopes: ['accounts:read'] });
    await signIn(page, { client: made.credentials });
    await goTo(page, '#/overview');
    await page.getByText('Nothing needs attention.').waitFor();
    expect(await page.locator('.tile, figure').count()).toBe(0);
    await page.getByText('you need the permission transactions:read').waitFor();
    const items = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
    expect(items).toContain('Accounts');
    expect(items).not.toContain('Audit');
    await goTo(page, `#/accounts/${p.demo.account_id}`);
    await page.getByRole('heading', { name: 'Acme Treasury' }).waitFor();
    expect(await shown(page)).toMatch(/Type Organisation .*you need the permission wallets:read/);
    expectQuiet(open, p.url, documents);
  });
});
