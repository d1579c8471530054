import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { beforeAll, expect, inject, it } from 'vitest';
import {
  beginAt,
  beginSignedOut,
  moveTo,
  openConsole,
  signIn,
  tryToSignIn,
  useConsole,
} from '../support/console/console-page.ts';
import { XSS } from '../support/console/xss-strings.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { notification } from '../support/webhook/fixture.ts';

/** Of the views that show one thing each, one in so many is opened; of lists and short addresses one in `SOME`. */
const EACH = inject('isThorough') ? 1 : 15;
const SOME = 5;
const SOON = { interval: 80 };
/** The rows of a page. */
const PAGE = 20;
const AT = '2001-02-03T04:05:06Z';
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString();
const PATHS =
  /^\/(?:console\/(?:[\w@./-]+\.(?:ts|m?js|css|svg))?|graphql|console\/session|v2\/oauth\/(?:token|revoke))$/;
/** What a node would look like to Preact, and what its elements would take for a member of theirs. */
const NODE = { type: 'img', key: null, ref: null, __v: 1, props: { src: 'x', onerror: 'alert(1)' } };

/** Each text under a name in turn, so that no two fields of a row have the same. */
const text = (at: number) => XSS[at % XSS.length] ?? '';

const p = useConsole();

const rows = () => p.service.context.database.db.unscoped('test');
const times = { created_at: AT, updated_at: AT };

interface Poisoned {
  accountId: string;
  walletId: string;
  ruleIds: string[];
  migrationIds: string[];
}

async function poisonAccounts(): Promise<Pick<Poisoned, 'accountId' | 'walletId'>> {
  const { node_id } = p.demo;
  const accounts = XSS.map((name, at) => ({
    ...{ id: randomUUID(), node_id, name, type: text(at + 1), status: 1 + (at % 4), ...times },
  }));
  const chains = XSS.map((name) => ({ id: randomUUID(), name }));
  const [accountId = '', chain_id = ''] = [accounts[0]?.id, chains[0]?.id];
  const networks = XSS.map((name) => ({ id: randomUUID(), chain_id, name }));
  const wallets = chains.map(({ id }) => ({
    ...{ id: randomUUID(), node_id, account_id: accountId, chain_id: id, ...times },
  }));
  const walletId = wallets[0]?.id ?? '';
  await rows().run((k) => k.insertInto('accounts').values(accounts));
  await rows().run((k) => k.insertInto('chains').values(chains));
  await rows().run((k) => k.insertInto('networks').values(networks));
  await rows().run((k) => k.insertInto('wallets').values(wallets));
  await rows().run((k) =>
    k
      .insertInto('wallet_networks')
      .values(networks.map(({ id }) => ({ wallet_id: walletId, network_id: id, node_id, created_at: AT }))),
  );
  return { accountId, walletId };
}

/** The content of a rule with a condition of each text from a number on. */
function contentOf(at: number, count: number) {
  const conditions = Array.from({ length: count }, (_, more) => ({
    ...{ field: text(at + more), op: text(at + more + 1), value: '1' },
    network_currency_id: text(at + more + 3),
  }));
  return {
    name: text(at),
    auto_transfer_rule: {
      ...{ type: 'auto', amount: '1', target_wallet_id: text(at + 5) },
      rule_logic: { and: conditions },
    },
    sign_and_approve_rule: { mandatory_user_id: text(at + 6) },
    permissionless_transfer_limit_rule: { max_amount: '1', time_period: 'day', time_period_value: 1 },
  };
}

/** A rule of each text; the first one has a version of each, and a condition of each. */
async function poisonRules(walletId: string): Promise<string[]> {
  const of = { node_id: p.demo.node_id, wallet_id: walletId, network_id: randomUUID() };
  const more = { ...of, network_currency_id: randomUUID(), type: 'auto_transfer' as const };
  const ids = XSS.map(() => randomUUID());
  const rules = ids.map((id, at) => ({ id, ...more, ...times, ...contentOf(at, 2), version: 1 }));
  const { db } = p.service.context.database;
  // The database writes a version with each change, by the author that the transaction names.
  const changeBy = (at: number, change: () => Promise<unknown>) =>
    db.transaction(async () => {
      const author = { subject: text(at), client_id: text(at + 8), correlation_id: text(at + 9) };
      const name = 'portcullis.rule_author';
      await db.unscoped('a setting').raw((sql) => sql`select set_config(${name}, ${JSON.stringify(author)}, true)`);
      await change();
    });
  await changeBy(0, () => rows().run((k) => k.insertInto('wallet_rules').values(rules as never)));
  for (let at = 1; at <= XSS.length; at += 1) {
    const content = contentOf(at, at === XSS.length ? XSS.length : 1);
    const changed = { ...content, version: at + 1 } as never;
    await changeBy(at, () =>
      rows().run((k) =>
        k
          .updateTable('wallet_rules')
          .set(changed)
          .where('id', '=', ids[0] ?? ''),
      ),
    );
  }
  return ids;
}

/** A transaction whose id is each text, by the way that notifications take. */
async function poisonTransactions(): Promise<void> {
  const { transactions } = p.service.context;
  const of = { nodeId: p.demo.node_id, collection: 'user_transactions', type: 1, assetId: null } as const;
  for (const id of XSS) await transactions.register({ id, ...of });
  const deliveries = XSS.map((id, at) => ({
    body: Buffer.from(
      JSON.stringify(
        notification({
          ...{ id, status: 4, error: text(at + 1), transaction_hash: text(at + 2) },
          contract_address: text(at + 3),
        }),
      ),
    ),
    correlationId: text(at + 4),
  }));
  await transactions.applyBatch('transactions.user', deliveries);
}

async function poisonMigrations(): Promise<string[]> {
  const { node_id } = p.demo;
  const counts = { status: 'done' as const, total: XSS.length, skipped: 0, success: 0, failed: XSS.length };
  const migrations = Array.from({ length: 9 }, (_, at) => ({
    ...{ id: randomUUID(), node_id, ...counts, created_at: YESTERDAY, finished_at: YESTERDAY },
    created_by: XSS.slice(at * 5, at * 5 + 5).join(' '),
  }));
  await rows().run((k) => k.insertInto('migrations').values(migrations));
  const outcomes = XSS.map((email, at) => ({
    ...{ migration_id: migrations[0]?.id ?? '', index: at + 1, node_id, email, external_id: text(at + 1) },
    ...{ status: 'failed' as const, reason: text(at + 2) },
  }));
  await rows().run((k) => k.insertInto('migration_rows').values(outcomes));
  return migrations.map(({ id }) => id);
}

async function poisonRecords(): Promise<void> {
  const records = XSS.map((correlation_id, at) => ({
    ...{ at: YESTERDAY, id: randomUUID(), node_id: p.demo.node_id, correlation_id, method: text(at + 1) },
    ...{ path: text(at + 2), query: text(at + 3), status_code: 200, elapsed: 1, is_api: false },
    headers: { [text(at + 4)]: text(at + 5), ':reason': text(at + 6), node: NODE as never, list: [text(at + 7)] },
    ...{ remote_address: text(at + 8), real_ip: text(at + 9), request_bytes: '0', response_bytes: '0' },
    ...{ request_body: `> ${text(at + 10)}`, response_body: JSON.stringify({ [text(at + 11)]: text(at + 12) }) },
  }));
  await rows().run((k) => k.insertInto('audit_records').values(records));
}

/** What is shown: the texts of the document and of its tooltips, and the values of its inputs. */
const SHOWN = `(() => {
  const inputs = [...document.querySelectorAll('input, select, textarea')].map(({ value }) => value);
  const tooltips = [...document.querySelectorAll('[title]')].map(({ title }) => title);
  return [document.body.textContent, ...tooltips, ...inputs].join('\\n');
})()`;

/** Elements and attributes that no view makes; those of other namespaces and of unknown names among them. */
const STRANGE = `[...document.querySelectorAll('body *')].filter((element) => {
  if (element.matches('svg.icon[aria-hidden], svg.icon > path') && element.childElementCount < 2)
    return [...element.attributes].some(({ name, value }) => !/^(?:class|viewBox|width|height|aria-hidden|d)$/.test(name) || !/^(?:icon|true|[MLHVCSAZmlhvcsaz\\d .-]+)$/.test(value));
  if (!(element instanceof HTMLElement) || element instanceof HTMLUnknownElement || element.localName.includes('-')) return true;
  if (element.matches('script, style, link, meta, base, iframe, frame, object, embed, template, video, audio, marquee')) return true;
  if (element.localName === 'img' && element.getAttribute('src') !== 'icon.svg') return true;
  return [...element.attributes].some(({ name, value }) => {
    if (['href', 'src', 'action', 'data', 'xlink:href', 'ping', 'poster'].includes(name)) return !/^(?:#|icon\\.svg$)/.test(value);
    if (name === 'style') return !/^flex-grow: \\d+;$/.test(value);
    return /^on|^srcdoc$|^formaction$|[<"'=\`]/.test(name);
  });
}).map((element) => element.outerHTML.slice(0, 200))`;

/** Where names are shown as words, their letters are of another case, and spaces are between them. */
const alike = (shown: string) => shown.toLowerCase().replaceAll(/[\s_]+/g, '');

/** Waits until all of the texts are shown, and checks that no element was made of any. */
async function look(page: Page, texts: readonly string[]): Promise<void> {
  const missing = async () => {
    const shown = alike(await page.evaluate<string>(SHOWN));
    return texts.filter((each) => !shown.includes(alike(each)));
  };
  await expect.poll(missing, SOON).toEqual([]);
  expect(await page.evaluate(STRANGE)).toEqual([]);
}

async function at(page: Page, place: string, texts: readonly string[] = []): Promise<void> {
  await moveTo(page, place);
  await look(page, texts);
}

/** Looks at a list over its pages, which show each text among them. */
async function everyPage(page: Page, place: string, noun: string): Promise<void> {
  await at(page, place);
  const turning = page.getByRole('navigation', { name: `Pages of ${noun}` });
  let shown = '';
  for (let first = 1; first <= XSS.length; first += PAGE) {
    await turning.getByText(`${first} to `).waitFor();
    await expect.poll(() => page.locator('[aria-busy="true"]').count(), SOON).toBe(0);
    expect(await page.evaluate(STRANGE)).toEqual([]);
    shown += alike(await page.evaluate<string>(SHOWN));
    if (first + PAGE <= XSS.length) await turning.getByRole('button', { name: 'Next' }).click();
  }
  expect(XSS.filter((each) => !shown.includes(alike(each)))).toEqual([]);
}

async function expectNothingRan(): Promise<void> {
  const { page, requests, complaints, loads } = open;
  expect(await page.evaluate('typeof window.pwned')).toBe('undefined');
  expect(dialogs).toEqual([]);
  expect(requests.filter(({ origin, pathname }) => origin !== p.url || !PATHS.test(pathname)).map(String)).toEqual([]);
  // The browser itself names answers that refuse something.
  expect(
    complaints.filter((told) => !/^Failed to load resource: the server responded with a status of 40[01]/.test(told)),
  ).toEqual([]);
  expect(loads()).toBe(1);
  expect(page.context().pages()).toHaveLength(1);
}

/** The page of all cases, and the texts of the dialogs that it has opened. */
const open = beforeTests(() => openConsole(p));
const dialogs: string[] = [];
let poisoned: Poisoned;

describeReal('chromium', 'hostile texts in the console', () => {
  beforeAll(async () => {
    const { accountId, walletId } = await poisonAccounts();
    poisoned = {
      ...{ accountId, walletId, ruleIds: await poisonRules(walletId) },
      migrationIds: await poisonMigrations(),
    };
    await poisonTransactions();
    await poisonRecords();
    open.page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
  });

  it('are at least 40, all different', () => {
    expect(new Set(XSS).size).toBeGreaterThanOrEqual(40);
  });

  it('are shown as text in transactions: ids, errors, hashes, addresses, correlation ids', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await at(page, '#/transactions', XSS);
    for (const [index, id] of XSS.entries()) {
      // Each of them shows five.
      if (index % EACH !== 0) continue;
      const texts = [1, 2, 3, 4].map((more) => text(index + more));
      await at(page, `#/transactions/${encodeURIComponent(id)}`, ['All notifications', id, ...texts]);
    }
    await expectNothingRan();
  });

  it('are shown as text in accounts, wallets, networks and rules, with their conditions and versions', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    const { accountId, walletId, ruleIds } = poisoned;
    await at(page, `#/wallets/${walletId}`, XSS);
    const lists = [
      ['#/accounts', 'accounts'],
      [`#/accounts/${accountId}`, 'wallets'],
      ['#/rules', 'rules'],
      [`#/wallets/${walletId}`, 'rules'],
    ] as const;
    for (const [place, noun] of inTurn(lists, 2, 0)) await everyPage(page, place, noun);
    await at(page, `#/wallets/${walletId}/rules/new`, ['New rule']);
    await page.getByRole('combobox', { name: 'Network' }).click();
    await look(page, XSS);
    for (const id of inTurn(ruleIds.slice(1, 4), 3, 0))
      await at(page, `#/wallets/${walletId}/rules/${id}`, ['Created.']);
    await at(page, `#/wallets/${walletId}/rules/${ruleIds[0]}`, ['Not evaluated', ...XSS]);
    await expectNothingRan();
  });

  it('are shown as text in audit records', async () => {
    const page = await beginAt(open, p.demo, '#/audit');
    const [since, until] = [-1, 1].map((ms) => new Date(Date.parse(YESTERDAY) + ms).toISOString());
    await at(page, `#/audit?since=${since}&until=${until}`, ['1 to 20 of']);
    await page.locator('tbody button').first().click();
    await page.getByRole('dialog').waitFor();
    await page.getByRole('button', { name: 'Request', exact: true }).click();
    await look(page, ['Request headers']);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    for (const [index, id] of XSS.entries()) {
      // Each of them shows thirteen.
      if (index % EACH !== 0) continue;
      const texts = Array.from({ length: 11 }, (_, more) => text(index + more));
      texts[7] = JSON.stringify([text(index + 7)]);
      const answer = JSON.stringify(text(index + 12));
      await at(page, `#/audit?${new URLSearchParams({ correlationId: id })}`, ['Response body', ...texts, answer]);
    }
    await expectNothingRan();
  });

  it('are shown as text in user migrations: names of files and columns, values of rows, reasons, who started them', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    for (const [index, id] of inTurn([...poisoned.migrationIds.entries()], SOME, 0)) {
      await at(page, `#/migrations/${id}`, XSS.slice(index * 5, index * 5 + 5));
    }
    await everyPage(page, `#/migrations/${poisoned.migrationIds[0]}`, 'rows');
    const quoted = XSS.map((each) => `"${each.replaceAll('"', '""')}"`);
    const upload = async (name: string, text: string) => {
      await at(page, '#/migrations/new', ['Import users']);
      await page
        .getByLabel('CSV file of users')
        .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });
      await look(page, [name]);
    };
    for (const [index, each] of quoted.entries()) {
      if (index % EACH !== 0) continue;
      await upload('<img src=x onerror=alert(1)>.csv', `${each}\n`);
      await page.getByRole('alert').waitFor();
      await page.getByRole('button', { name: 'Choose another file' }).click();
    }
    const users = quoted.map((each, at) => `0xc${at},${each},${each}\n`).join('');
    await upload('"><svg onload=alert(2)>.csv', `wallet_address,email,external_id\n${users}`);
    await page.getByRole('button', { name: 'Check without saving' }).click();
    await page.getByText(`of ${XSS.length} rows`).waitFor();
    await page.getByRole('button', { name: 'All rows' }).click();
    await look(page, XSS.slice(0, 20));
    await expectNothingRan();
  });

  it('are shown as text from the URL and in the sign-in', async () => {
    const page = await beginSignedOut(open);
    const [id, username] = [text(5), text(9)];
    await tryToSignIn(page, { client: { client_id: id, client_secret: id }, supervisor: { username, password: id } });
    await page.getByRole('alert').waitFor();
    await signIn(page, p.demo);
    const names = ['correlationId', 'path', 'status', 'since', 'until', 'type', 'search', 'deleted'];
    const places = ['#/', '#', '#/transactions/', '#/transactions?status=', '#/accounts/', '#/accounts?search='];
    for (const [index, each] of [...XSS, '__proto__', 'constructor', 'toString'].entries()) {
      if (inject('isThorough') || index % SOME === 0) await at(page, `${places[index % places.length]}${each}`);
      if (index % EACH !== 0) continue;
      const given = new URLSearchParams([...names, each].map((name) => [name, each]));
      await at(page, `#/${index % 8 ? 'transactions' : 'accounts'}?${given}`);
      given.set('correlationId', text(index + 1));
      await at(page, `#/audit?${given}`, [text(index + 1)]);
    }
    await expectNothingRan();
  });
});
