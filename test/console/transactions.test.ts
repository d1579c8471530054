import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import {
  beginAt,
  expectQuiet,
  goTo,
  idsOf,
  openConsole,
  SOON,
  shown,
  signIn,
  useConsole,
  waitForUpdates,
} from '../support/console/console-page.ts';
import { startRelay } from '../support/console/relay.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { takePicture } from '../support/harness/browser.ts';
import { notify, registered } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const p = useConsole();
const relay = beforeTests(() => startRelay(p.url));
/** The page of the cases that have no clock of their own; it comes by the relay. */
const open = beforeTests(() => openConsole(relay));

/** The ids of the first rows. */
async function top(page: Page, count?: number): Promise<string[]> {
  return (await idsOf(page)).slice(0, count);
}

/** The same, in the order of their ids: notifications about different ones may overtake each other. */
async function sortedTop(page: Page, count: number): Promise<string[]> {
  return (await top(page, count)).toSorted();
}

function row(page: Page, id: string) {
  return page.getByRole('row').filter({ has: page.locator(`.id[title="${id}"]`) });
}

/** A tab of the list, by the beginning of its text: the number follows. */
function tab(page: Page, text: string) {
  return page.getByRole('group', { name: 'Status' }).getByRole('button', { name: text });
}

async function isLive(page: Page): Promise<void> {
  await expect.poll(() => shown(page, '.link'), SOON).toMatch(/^Live/);
  await expect.poll(() => page.locator('.loading').count(), SOON).toBe(0);
}

const LATER = { updated_at: '2026-11-21T10:40:00Z' };

/** Shorter than the wait of a stream that is opened again, and the console's own reserve. */
const TOKEN_SECONDS = 3;

describeReal('chromium', 'the transactions of the console', () => {
  it('appear and change with each notification, the latest on top', async () => {
    const [first = '', second = ''] = await registered(p, 2);
    const page = await beginAt(open, p.demo, '#/transactions');
    await isLive(page);
    await notify(p, first, 2);
    await row(page, first).getByText('In progress').waitFor();
    await notify(p, second, 2);
    await expect.poll(() => top(page, 2), SOON).toEqual([second, first]);
    await notify(p, first, 4, { ...LATER, error: 'no gas' });
    await row(page, first).getByText('no gas').waitFor();
    expect(await top(page, 2)).toEqual([first, second]);
    await waitForUpdates(page, 3);
    await expect.poll(() => tab(page, 'Failed').innerText(), SOON).toMatch(/1$/);
    await takePicture(page, 'console-transactions', 600);
    expectQuiet(open, relay.url);
  });

  it('DG-15: continue across tokens of a client that expire while the stream is open', async () => {
    const { credentials } = await createdClient(p, await p.clientToken(), {
      scopes: ['transactions:read'],
      tokenExpiry: { enabled: true, duration: TOKEN_SECONDS },
    });
    await using own = await openConsole(relay);
    const { page } = own;
    const streams: string[] = [];
    page.on('request', (request) => {
      const { accept = '', authorization = '' } = request.headers();
      if (accept.includes('text/event-stream')) streams.push(authorization);
    });
    await signIn(page, { client: credentials });
    await goTo(page, '#/transactions');
    await isLive(page);
    // That of the overview came before.
    streams.splice(0, streams.length - 1);
    const ids = await registered(p, 3);
    for (const [at, id] of ids.entries()) {
      await expect.poll(() => streams.length, SOON).toBeGreaterThan(at);
      await notify(p, id, 2);
      await row(page, id).waitFor();
    }
    expect(streams.length).toBeGreaterThanOrEqual(3);
    expect(new Set(streams).size).toBe(streams.length);
    expect(await sortedTop(page, 3)).toEqual(ids.toSorted());
  });

  it('are filtered by collection, status and type, also in the URL; one that leaves the status disappears', async () => {
    const [id = '', other = ''] = await registered(p, 2);
    await notify(p, id, 2);
    await notify(p, other, 2);
    const page = await beginAt(open, p.demo, '#/transactions');
    await page.getByLabel('Collection').selectOption('USER_TRANSACTIONS');
    await tab(page, 'In progress').click();
    await page.getByText('More filters').click();
    await page.getByLabel('Type code').fill('1');
    await page.keyboard.press('Enter');
    await isLive(page);
    await row(page, id).waitFor();
    expect(page.url()).toContain('status=IN_PROGRESS');
    await notify(p, id, 3, LATER);
    await row(page, id).waitFor({ state: 'detached' });
    await expect.poll(() => row(page, other).count(), SOON).toBe(1);
    await page.getByLabel('Type code').fill('999');
    await page.keyboard.press('Enter');
    await page.getByText('No transactions match.').waitFor();
    await page.getByLabel('Type code').fill('one');
    await page.keyboard.press('Enter');
    await page.getByText('Enter a whole number. The filter is not applied').waitFor();
    await goTo(page, '#/transactions?status=DONE');
    await row(page, id).waitFor();
    expect(await tab(page, 'Done').getAttribute('aria-pressed')).toBe('true');
    expect(await row(page, other).count()).toBe(0);
    expectQuiet(open, relay.url);
  });

  it('arrive while somebody types a filter, and keep what is typed', async () => {
    const [id = ''] = await registered(p, 1);
    const page = await beginAt(open, p.demo, '#/transactions');
    await isLive(page);
    const search = page.getByLabel('Id or hash');
    await search.pressSequentially(id.slice(0, 5));
    await notify(p, id, 2);
    await row(page, id).waitFor();
    expect(await search.inputValue()).toBe(id.slice(0, 5));
    await search.pressSequentially(id.slice(5));
    await page.keyboard.press('Enter');
    await expect.poll(() => idsOf(page), SOON).toEqual([id]);
    expect(await search.inputValue()).toBe(id);
  });

  it('have no gap and no duplicate after the stream broke, which is shown', async () => {
    const all = await registered(p, 8);
    const page = await beginAt(open, p.demo, '#/transactions');
    await isLive(page);
    for (const id of all.slice(0, 2)) await notify(p, id, 2);
    await waitForUpdates(page, 2);
    await expect.poll(() => sortedTop(page, 2), SOON).toEqual(all.slice(0, 2).toSorted());
    relay.cut();
    await page.getByText('Connection lost. Next attempt at').waitFor();
    for (const id of all.slice(2, 6)) await notify(p, id, 2);
    relay.mend();
    await waitForUpdates(page, 6);
    await expect.poll(() => sortedTop(page, 6), SOON).toEqual(all.slice(0, 6).toSorted());
    await isLive(page);
    for (const id of all.slice(6)) await notify(p, id, 2);
    await waitForUpdates(page, 8);
    await expect.poll(() => sortedTop(page, 8), SOON).toEqual(all.toSorted());
    expect(new Set(await top(page)).size).toBe((await top(page)).length);
    expect(await shown(page, '.link')).toContain('Reconnected. No updates were missed.');
  });

  it('are reloaded after a break without an earlier update: one that no longer matches the filter disappears', async () => {
    const [id = ''] = await registered(p, 1);
    await notify(p, id, 2);
    const page = await beginAt(open, p.demo, '#/transactions');
    await goTo(page, '#/transactions?status=IN_PROGRESS');
    await isLive(page);
    await row(page, id).waitFor();
    relay.cut();
    await page.getByText('Connection lost. Next attempt at').waitFor();
    await notify(p, id, 3, LATER);
    relay.mend();
    await row(page, id).waitFor({ state: 'detached' });
  });

  it('whose stream falls silent, without pings, reconnect', async () => {
    await using own = await openConsole(p);
    const { page } = own;
    await page.clock.install();
    await signIn(page, p.demo);
    await goTo(page, '#/transactions');
    await isLive(page);
    await page.clock.fastForward(60_000);
    await expect.poll(() => shown(page, '.link'), SOON).toContain('Connection lost');
    await page.clock.fastForward(2_000);
    await expect.poll(() => shown(page, '.link'), SOON).toMatch(/^Live .*Reconnected/);
  });

  it('are limited to 500, and the page says so', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    let asked = 0;
    await page.route('**/graphql', (route) => {
      if (!(route.request().postData() ?? '').includes('query Transactions(')) return route.fallback();
      asked += 1;
      const edges = Array.from({ length: 50 }, (_, at) => ({
        node: { id: `${asked}-${at}`, collection: 'USER_TRANSACTIONS', type: 1, status: 'DONE' },
      }));
      const pageInfo = { hasPreviousPage: true, startCursor: `${asked}` };
      return route.fulfill({ json: { data: { transactions: { pageInfo, edges } } } });
    });
    await goTo(page, '#/transactions');
    for (let shownRows = 50; shownRows < 500; shownRows += 50) {
      await page.getByText(`${shownRows} transactions shown`).waitFor();
      await page.getByRole('button', { name: 'Show older ones' }).click();
    }
    await page.getByText('There are more. Use the filters to find them.').waitFor();
    expect(await page.getByRole('button', { name: 'Show older ones' }).count()).toBe(0);
  });

  it('show their history and error, and whether the page is up to date', async () => {
    const [id = ''] = await registered(p, 1);
    await notify(p, id, 2);
    const page = await beginAt(open, p.demo, '#/transactions');
    await row(page, id).getByRole('link').first().click();
    await page.getByRole('table', { name: 'All notifications' }).waitFor();
    await expect.poll(() => shown(page, '.link'), SOON).toBe('Live');
    relay.cut();
    await page.getByText('Connection lost. Next attempt at').waitFor();
    await notify(p, id, 4, { ...LATER, error: 'no gas' });
    relay.mend();
    await expect.poll(() => shown(page), SOON).toContain('no gas');
    expect(await page.locator('.link').count()).toBe(0);
    expect(
      await page.getByRole('table', { name: 'All notifications' }).getByRole('row').count(),
    ).toBeGreaterThanOrEqual(3);
    await goTo(page, '#/transactions/nothing');
    await page.getByText('There is no transaction with this id').waitFor();
  });
});
