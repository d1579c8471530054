import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applied, beginAt, idsOf, openConsole, SOON, shown, signIn } from '../support/console/console-page.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { type OpenPage, startBrowser, takePicture } from '../support/harness/browser.ts';
import { type Portcullis, startEmbedded } from '../support/harness.ts';
import { registered } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

let p: Portcullis;
let browser: Browser;
let open: OpenPage;
/** Transactions of these ages, in minutes. */
let stuck: string;
let failed: string;
let early: string;

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

describeReal('chromium', 'the overview', () => {
  beforeAll(async () => {
    [p, browser] = await Promise.all([startEmbedded(), startBrowser()]);
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = await registered(p, 5);
    [stuck, failed, early] = [third, second, fifth];
    const midnight = new Date().setHours(0, 0, 0, 0);
    const before = (midnight - 60_000 - Date.now()) / -60_000;
    await applied(p, first, 2, { updated_at: ago(90) });
    await applied(p, stuck, 1, { updated_at: ago(26 * 60) });
    await applied(p, fourth, 2, { updated_at: ago(5) });
    await applied(p, failed, 4, { updated_at: ago(0), error: 'no gas' });
    await applied(p, early, 4, { updated_at: ago(before), transaction_hash: '0xfeed' });
    open = await openConsole(browser, p);
  });
  afterAll(async () => {
    await browser?.close();
    await p?.[Symbol.asyncDispose]();
  });

  it('names the transaction that has been stuck the longest and what it waits for, with a link to it', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const first = page.locator('.concerns li').first();
    await first.getByText('Stuck for 1 d 2 h').waitFor();
    await first.getByText('waits for the chain processor to prepare and sign it').waitFor();
    await first.getByRole('link').click();
    await page.locator(`.id[title="${stuck}"]`).waitFor();
    const progress = page.getByRole('list', { name: 'Progress' });
    await progress.getByText('waits for the chain processor to prepare and sign it').waitFor();
    expect(await progress.getByRole('listitem').count()).toBe(4);
    await beginAt(open, p.demo, '#/overview');
    const tile = page.getByRole('link', { name: 'In progress' });
    await expect.poll(() => tile.innerText(), SOON).toMatch(/\n2\nthe oldest for 1 h 3\d min; 1 more started$/);
    await takePicture(page, 'console-overview', 640);
    await tile.click();
    await expect.poll(() => idsOf(page), SOON).toHaveLength(2);
    await beginAt(open, p.demo, '#/overview');
    await page.getByRole('link', { name: 'All that are stuck' }).click();
    await expect.poll(() => idsOf(page), SOON).toHaveLength(2);
    expect((await idsOf(page))[0]).toBe(stuck);
    expect(await page.getByRole('button', { name: 'Stuck over an hour' }).innerText()).toMatch(/2$/);
    expect(open.complaints).toEqual([]);
  });

  it('links to the transactions that failed since midnight, and updates live', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const tile = page.getByRole('link', { name: 'Failed today' });
    await expect.poll(() => tile.innerText(), SOON).toContain('\n1\n');
    await tile.click();
    await page.getByText('no gas').waitFor();
    expect(await idsOf(page)).toEqual([failed]);
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByRole('group', { name: 'Status' }).getByRole('button', { name: 'Failed' }).click();
    await expect.poll(() => idsOf(page), SOON).toEqual([early, failed]);
    await page.getByLabel('Id or hash').fill('0xfeed');
    await page.keyboard.press('Enter');
    await expect.poll(() => idsOf(page), SOON).toEqual([early]);
    await beginAt(open, p.demo, '#/overview');
    await expect.poll(() => page.locator('figure').innerText(), SOON).toMatch(/Done\s+0\s+Failed\s+[12]\s+Open\s+2/);
    const [id = ''] = await registered(p, 1);
    await applied(p, id, 4, { updated_at: ago(0) });
    await expect.poll(() => tile.innerText(), { ...SOON, timeout: 15_000 }).toContain('\n2\n');
  });

  it('pauses the live list, and saves the listed rows as CSV', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await expect.poll(() => shown(page, '.link'), SOON).toMatch(/^Live/);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused. The list stays as it is').waitFor();
    const before = await idsOf(page);
    const [id = ''] = await registered(p, 1);
    await applied(p, id, 2, { updated_at: ago(0) });
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const lines = (await (await (await saving).createReadStream()).toArray()).join('').split('\r\n');
    expect(lines[0]).toBe('Status,Type,Collection,Id,Error,Updated,Hash');
    expect(lines.slice(1, -1).map((line) => line.split(',')[3])).toEqual(before);
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(async () => (await idsOf(page))[0], SOON).toBe(id);
  });

  it('shows nothing that the token may not read', async () => {
    const { credentials } = await createdClient(p, await p.clientToken(), { scopes: ['users:read'] });
    await using own = await openConsole(browser, p);
    await signIn(own.page, { client: credentials });
    await own.page.getByText('Nothing needs attention.').waitFor();
    expect(await own.page.locator('.tile, figure').count()).toBe(0);
    await own.page.getByText('you need the permission transactions:read').waitFor();
    expect(own.complaints).toEqual([]);
  });
});
