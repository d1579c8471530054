import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, inject, it } from 'vitest';
import { faults } from '../support/console/axe.ts';
import {
  applied,
  beginAt,
  beginSignedOut,
  goTo,
  openAccount,
  openConsole,
  SOON,
  shown,
  signIn,
  useConsole,
  VIEWS,
  type View,
} from '../support/console/console-page.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { notify, registered } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const SCHEMES = ['light', 'dark'] as const;
/** The widths, and the schemes of each. */
const SIZES: readonly [width: number, schemes: readonly (typeof SCHEMES)[number][]][] = inject('isThorough')
  ? [360, 1280, 3840].map((width) => [width, SCHEMES])
  : [
      [360, ['light']],
      [3840, ['dark']],
    ];

const p = useConsole();
/** The page of all cases, in a place that is not on UTC. */
const open = beforeTests(() =>
  openConsole(p, {
    timezoneId: 'Asia/Kolkata',
    locale: 'en-GB',
    reducedMotion: 'no-preference',
  }),
);
let views: readonly View[];

const AT = '2026-11-21T10:30:00Z';
const LONG = 'x'.repeat(300);

/** Views of what the demo has none of: rules of each type, a migration with rows, an audit record. */
async function moreViews(): Promise<View[]> {
  const { node_id, wallet_id, network_id, network_currency_id, target_wallet_id } = p.demo;
  const rows = p.service.context.database.db.unscoped('test');
  const [auto, limit, migration] = [randomUUID(), randomUUID(), randomUUID()];
  const leaf = { field: 'target.balance', op: 'gte' as const, value: '1', network_currency_id };
  const given = {
    node_id,
    wallet_id,
    network_id,
    network_currency_id,
    name: `Rule ${LONG}`,
    created_at: AT,
    updated_at: AT,
  };
  const parts = { amount: '1', target_wallet_id, rule_logic: { and: [leaf, { not: { or: [leaf, leaf] } }] } };
  const limited = { max_amount: '1', time_period: 'day' as const, time_period_value: 1 };
  await rows.run((k) =>
    k.insertInto('wallet_rules').values([
      { id: auto, ...given, type: 'auto_transfer', auto_transfer_rule: { type: 'auto', ...parts } },
      { id: limit, ...given, type: 'permissionless_transfer_limit', permissionless_transfer_limit_rule: limited },
    ]),
  );
  const counts = { total: 2, success: 0, skipped: 1, failed: 1, created_by: LONG, created_at: AT, finished_at: AT };
  await rows.run((k) => k.insertInto('migrations').values({ id: migration, node_id, status: 'done', ...counts }));
  const outcome = { migration_id: migration, node_id, email: `${LONG}@x.y`, external_id: LONG, reason: LONG };
  await rows.run((k) =>
    k.insertInto('migration_rows').values([
      { index: 1, status: 'failed', ...outcome },
      { index: 2, status: 'skipped', ...outcome },
    ]),
  );
  const { text } = await p.call('POST', `/v1/wallets/${LONG}/rules`, {
    token: await p.clientToken(),
    json: {},
    headers: { 'x-correlation-id': 'of-people' },
  });
  expect(text).not.toBe('');
  await p.service.context.auditWriter.flush();
  const asked = { path: `/v1/${LONG}`, since: AT };
  const by = p.demo.client.client_id;
  await p.service.context.auditExports.request(node_id, { asked, filter: {}, by });
  const [person] = await rows.run((k) =>
    k.selectFrom('supervisors').select('id').where('node_id', '=', node_id).limit(1),
  );
  const [asset] = await rows.run((k) => k.selectFrom('assets').select('id').where('node_id', '=', node_id).limit(1));
  const token = await p.clientToken();
  const json = { wallet_address: `0x${LONG.slice(0, 100)}`, email: `${LONG.slice(0, 60)}@x.y` };
  const made = await p.call('POST', '/v2/users/migrate/with-wallet', { token, json });
  const user: string = made.json.id;
  await p.service.context.userErasure.erase(node_id, user, null);
  const rules = `#/wallets/${wallet_id}/rules`;
  return [
    { name: 'a new rule', place: () => `${rules}/new` },
    { name: 'an automatic transfer', place: () => `${rules}/${auto}` },
    { name: 'a limit', place: () => `${rules}/${limit}` },
    { name: 'a migration', place: () => `#/migrations/${migration}` },
    { name: 'an audit record', place: () => '#/audit?correlationId=of-people' },
    { name: 'a group of failures', place: () => `#/overview?group=${encodeURIComponent(`FAILED no gas ${LONG}`)}` },
    { name: 'audit exports', place: () => '#/audit?path=%2Fv1&exports=shown' },
    { name: 'a client', place: ({ client }) => `#/clients/${client.client_id}` },
    { name: 'a supervisor', place: () => `#/supervisors/${person?.id}` },
    { name: 'an erased user', place: () => `#/users/${user}` },
    { name: 'an asset', place: () => `#/assets/${asset?.id}` },
    { name: 'an audit list', place: () => '#/audit?path=%2Fv1&changes=only&range=10080' },
  ];
}

/** Views with several times side by side. */
const WITH_TIMES = [
  'the overview',
  'a supervisor',
  'an erased user',
  'an asset',
  'a transaction',
  'a migration',
  'an automatic transfer',
  'an audit record',
  'an audit list',
];

/** How far the page can be scrolled sideways. */
function sideways(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** Returns what lies over each other in the page, what stands out of its card, and facts that are wider than their column. */
function overlaps(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const kinds = 'a, button, input, select, textarea, summary, time, code, h1, h2, h3, p, dt, dd, th, td, label, legend, small, .badge, .icon';
    // What lies behind an open dialog is meant to be covered.
    const all = [...(document.querySelector('dialog:modal') ?? document).querySelectorAll(kinds)].filter((of) => of.checkVisibility() && !of.closest('.sticky, .skip, .hidden'));
    const seen = all.filter((of) => ![of, of.closest('thead')].some((each) => each && getComputedStyle(each).position === 'absolute') && !of.closest('[popover]:not(:popover-open, .side)'))
      .map((of) => ({ of, rects: [...of.getClientRects()] }));
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const over = seen.filter(({ of, rects }, at) => seen.slice(at + 1).some(({ of: other, rects: others }) =>
      !of.contains(other) && !other.contains(of) && rects.some((a) => others.some((b) => meet(a, b)))));
    const wide = [...document.querySelectorAll('.facts dd')].filter((of) => of.scrollWidth > of.clientWidth + 1);
    // On a phone a row of tabs is scrolled in itself.
    const out = seen.filter(({ of, rects }) => !of.closest('.tabs') && rects.some(({ left, right }) => left < -1 || right > innerWidth + 1));
    return [...over.map(({ of }) => of), ...wide, ...out.map(({ of }) => of)].map((of) => of.outerHTML.slice(0, 120));
  })()`);
}

/** What is found in a view at every width, in light, in dark and in forced colours; in a quick run at one or two of them in turn. */
async function everywhere(page: Page, name: string, turn: number): Promise<string[]> {
  const found: string[] = [];
  for (const [width, schemes] of inTurn(SIZES, 2, turn)) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      const here = await faults(page);
      if ((await sideways(page)) > 0) here.push('the page scrolls sideways');
      found.push(...here.map((fault) => `${name} ${width} ${colorScheme}: ${fault}`));
    }
  }
  if (!inject('isThorough') && turn % 4 !== 0) return found;
  await page.emulateMedia({ forcedColors: 'active' });
  // The colours are then the person's own.
  const forced = (await faults(page)).filter((fault) => !fault.startsWith('color-contrast'));
  found.push(...forced.map((fault) => `${name} forced colours: ${fault}`));
  await page.emulateMedia({ forcedColors: null });
  return found;
}

/** Presses Tab until the element has the focus, which must be seen on each one on the way. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press('Tab');
    const [isThere, outline] = await page.evaluate<[boolean, string]>(
      `[document.activeElement.matches(${JSON.stringify(selector)}), getComputedStyle(document.activeElement).outlineStyle]`,
    );
    // The button in an input for times shows the focus itself: the input then has none.
    const isInTime = await page.evaluate<boolean>(
      'document.activeElement.matches("[type=datetime-local]:not(:focus)")',
    );
    expect(isInTime || outline !== 'none').toBe(true);
    if (isThere) return;
  }
  throw new Error(`no Tab leads to ${selector}`);
}

describeReal('chromium', 'accessibility of the console', () => {
  beforeAll(async () => {
    await applied(p, p.demo.transactions.user_transactions, 2);
    await applied(p, p.demo.transactions.otc_transactions, 4, { error: `no gas ${'x'.repeat(300)}` });
    views = [...VIEWS, ...(await moreViews())];
  });
  afterEach(async () => {
    await open.page.setViewportSize({ width: 1280, height: 800 });
    await open.page.emulateMedia({ colorScheme: null, forcedColors: null, reducedMotion: null });
  });

  it('has no accessibility violation from 360 to 3,840 px, light, dark and in forced colours', async () => {
    const page = await beginSignedOut(open);
    const found = await everywhere(page, 'sign-in', 0);
    await page.setViewportSize({ width: 1280, height: 800 });
    await signIn(page, p.demo);
    // In a quick run some of the views, those with the most elements among them.
    for (const [at, { name, place }] of inTurn(views, 9, 7).entries()) {
      await goTo(page, place(p.demo));
      found.push(...(await everywhere(page, name, at + 1)));
    }
    // The last view may be a sheet, which lies over the account.
    await page.setViewportSize({ width: 1280, height: 800 });
    await goTo(page, '#/overview');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('acme');
    await page.locator('.palette').getByRole('option').first().waitFor();
    found.push(...(await everywhere(page, 'the search', 1)));
    await page.keyboard.press('Escape');
    await page.setViewportSize({ width: 1280, height: 800 });
    await openAccount(page);
    found.push(...(await everywhere(page, 'the account', 0)));
    await page.setViewportSize({ width: 360, height: 800 });
    await page.keyboard.press('Escape');
    await openAccount(page);
    expect((await page.locator('.menu:popover-open').boundingBox())?.x).toBeGreaterThanOrEqual(0);
    expect(found).toEqual([]);
  });

  it('has no overlapping elements, and no horizontal scrolling at any width, also at a zoom of 200 %', async () => {
    await using own = await openConsole(p, { locale: 'en-US', reducedMotion: 'no-preference' });
    const { page } = own;
    await signIn(page, p.demo);
    const found: string[] = [];
    const seen = inject('isThorough')
      ? views
      : inTurn(
          views.filter(({ name }) => WITH_TIMES.includes(name)),
          2,
          0,
        );
    for (const [turn, { name, place }] of seen.entries()) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await goTo(page, place(p.demo));
      // A zoom of 200 % halves the width of a window of 768 to 1,440 px. In a quick run each view has others of them.
      for (const width of inTurn([360, 384, 390, 512, 640, 720, 768, 1024, 1280, 1440, 1920, 3840], 4, turn)) {
        await page.setViewportSize({ width, height: 900 });
        found.push(...(await overlaps(page)).map((text) => `${name} ${width}: ${text}`));
        if ((await sideways(page)) > 0) found.push(`${name} ${width}: the page scrolls sideways`);
      }
    }
    expect(found).toEqual([]);
  });

  it('works with the keyboard only: sign-in, filters, a transaction; the focus is always visible', async () => {
    const page = await beginSignedOut(open);
    const { username, password } = p.demo.supervisor;
    await expect.poll(() => page.evaluate('document.activeElement.name'), SOON).toBe('username');
    await page.keyboard.type(username);
    await tabTo(page, '[name="password"]');
    await page.keyboard.type(password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.textContent'), SOON).toBe('Overview');
    await page.locator('a.tile').first().waitFor();
    await tabTo(page, 'a.tile[href*="ERROR"]');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Transactions' }).waitFor();
    await page.getByText('No transactions match.').waitFor();
    await tabTo(page, '.chips button');
    await page.keyboard.press('Enter');
    await tabTo(page, '.tabs button:nth-of-type(6)');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url(), SOON).toContain('status=ERROR');
    await page.getByRole('row').getByText('no gas').waitFor();
    await tabTo(page, 'tbody a');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Open to OTC', level: 1 }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.textContent'), SOON).toBe('Open to OTC');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Transactions' }).waitFor();
  });

  it('has a skip link, and shows borders and focus in forced colours', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await page.emulateMedia({ forcedColors: 'active' });
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
    await tabTo(page, 'select');
    const widths = await page.evaluate<string[]>(
      '[...document.querySelectorAll("button, select, input:not([type=radio]), .badge")].map((each) => getComputedStyle(each).borderTopWidth)',
    );
    expect(new Set(widths)).toEqual(new Set(['1px']));
    const current = 'getComputedStyle(document.querySelector(".side [aria-current]"))';
    const other = 'getComputedStyle(document.querySelector(".side a:not([aria-current])"))';
    const told = await page.evaluate<boolean>(
      `['outlineStyle', 'borderTopWidth', 'textDecorationLine', 'backgroundColor', 'fontWeight'].some((name) => ${current}[name] !== ${other}[name])`,
    );
    expect(told).toBe(true);
  });

  it('has no animation with reduced motion', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await expect.poll(() => shown(page, '.link'), SOON).toMatch(/^Live/);
    await notify(p, p.demo.transactions.node_transactions, 2);
    await page.locator('.marked').waitFor();
    expect(await page.evaluate('document.getAnimations().length')).toBe(0);
  });

  it('announces a new page only when it is loaded, keeps the focus, and keeps rows that cannot be reloaded', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    const pager = page.getByRole('navigation', { name: 'Pages of accounts' });
    const [, total] = /of (\d+) accounts/.exec(await pager.innerText()) ?? [];
    const held = Promise.withResolvers<void>();
    await page.route('**/graphql', (route) => held.promise.then(() => route.continue()));
    await pager.getByRole('button', { name: 'Next' }).focus();
    await page.keyboard.press('Enter');
    await pager.getByText('Loading …').waitFor();
    await page.keyboard.press('Enter');
    held.resolve();
    await pager.getByText(`21 to ${total} of ${total} accounts`).waitFor();
    await pager.getByRole('button', { name: 'Previous' }).click();
    await pager.getByText('1 to 20 of').waitFor();
    await page.unroute('**/graphql');
    await page.route('**/graphql', (route) => route.abort());
    await page.getByRole('link', { name: 'Accounts' }).click();
    await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
    expect(await page.getByRole('table', { name: 'Accounts' }).getByRole('row').count()).toBe(21);
    await page.unroute('**/graphql');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  it('shows times relative to now, or as local time on request, with UTC in the tooltip', async () => {
    const page = await beginAt(open, p.demo, `#/transactions/${p.demo.transactions.otc_transactions}`);
    const time = page.locator('.facts time').first();
    expect(await time.getAttribute('title')).toBe('21 Nov 2026, 16:01:00\n2026-11-21 10:31:00 UTC');
    expect(await time.innerText()).toMatch(/^(?:\d+ (?:days?|hours?|hr|min) ago|21 Nov 2026, 16:01:00)$/);
  });

  it('shows that notifications of a transaction contradict each other, and that its type is unknown in its collection', async () => {
    const [id = ''] = await registered(p, 1);
    const UNKNOWN = 99;
    await applied(p, id, 3, { type: UNKNOWN });
    await applied(p, id, 4, { type: UNKNOWN, updated_at: '2026-11-21T10:40:00Z', error: 'reverted' });
    const page = await beginAt(open, p.demo, `#/transactions/${id}`);
    await page.getByText('reverted').first().waitFor();
    const text = await shown(page);
    for (const told of ['Failed Conflict', 'The status shown is from the latest update', 'This type code is unknown'])
      expect(text).toContain(told);
    expect(text).toContain(`Type code ${UNKNOWN}`);
    expect(await faults(page)).toEqual([]);
  });
});
