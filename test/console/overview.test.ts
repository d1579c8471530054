import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import {
  applied,
  beginAt,
  idsOf,
  openConsole,
  SOON,
  shown,
  signIn,
  useConsole,
} from '../support/console/console-page.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { takePicture } from '../support/harness/browser.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { registered } from '../support/realtime/live.ts';
import { describeReal } from '../support/services/real.ts';

const p = useConsole();
const open = beforeTests(() => openConsole(p));
/** Transactions of these ages, in minutes. */
let stuck: string;
let failed: string;
let early: string;

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

describeReal('chromium', 'the overview', () => {
  beforeAll(async () => {
    // One after the other: their lists are in the order of their registration.
    const [[first = ''], [second = ''], [third = ''], [fourth = ''], [fifth = '']] = [
      await registered(p, 1),
      await registered(p, 1),
      await registered(p, 1),
      await registered(p, 1),
      await registered(p, 1),
    ];
    [stuck, failed, early] = [third, second, fifth];
    const midnight = new Date().setHours(0, 0, 0, 0);
    const before = (midnight - 60_000 - Date.now()) / -60_000;
    await applied(p, first, 2, { updated_at: ago(90) });
    await applied(p, stuck, 1, { updated_at: ago(26 * 60) });
    await applied(p, fourth, 2, { updated_at: ago(5) });
    await applied(p, failed, 4, { updated_at: ago(0), error: 'no gas' });
    await applied(p, early, 4, { updated_at: ago(before), transaction_hash: '0xfeed' });
  });

  it('begins with what needs a decision, in groups by reason, each of which opens beside the list and leads to it', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const groups = page.getByRole('list', { name: 'What needs a decision' }).getByRole('link');
    const texts = async () => (await groups.allInnerTexts()).map((text) => text.split('\n').slice(0, 2).join(' '));
    const failures = ['Failed 1 × no gas', 'Failed 1 × no reason was reported'];
    await expect
      .poll(async () => (await texts()).toSorted(), SOON)
      .toEqual([...failures, 'Stuck 1 × in progress for over an hour', 'Stuck 1 × started for over an hour']);
    // The oldest of those that are stuck is first.
    expect((await texts()).slice(2)).toEqual([
      'Stuck 1 × started for over an hour',
      'Stuck 1 × in progress for over an hour',
    ]);
    await takePicture(page, 'console-overview', 640);
    // On a phone the reason has room beside its kind.
    await page.setViewportSize({ width: 390, height: 844 });
    const room =
      "Math.min(...Array.from(document.querySelectorAll('.concerns a > span:not(.badge, .muted)'), (one) => one.clientWidth || one.getBoundingClientRect().width))";
    expect(await page.evaluate<number>(room)).toBeGreaterThan(150);
    await page.setViewportSize({ width: 1280, height: 800 });
    await groups.filter({ hasText: 'started' }).click();
    const group = page.getByRole('region', { name: 'Group' });
    await group.getByText('The oldest waits for the chain processor to prepare and sign it.').waitFor();
    await expect.poll(() => idsOf(page), SOON).toEqual([stuck]);
    // The focus goes into the group, and back to the list when it is closed.
    await expect
      .poll(() => page.evaluate('document.activeElement.textContent'), SOON)
      .toBe('1 × started for over an hour');
    await group.getByRole('link', { name: 'Close the group' }).press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.textContent'), SOON).toMatch(/^Stuck.*started/s);
    await page.keyboard.press('Enter');
    await group.waitFor();
    await page.reload();
    await group.waitFor();
    await groups.filter({ hasText: 'no gas' }).click();
    await expect.poll(() => idsOf(page), SOON).toEqual([failed]);
    await group.getByRole('link', { name: 'Open the list' }).click();
    const chips = page.getByRole('list', { name: 'Filters in force' }).getByRole('listitem');
    await expect.poll(() => chips.first().innerText(), SOON).toBe('Error: no gas');
    await expect.poll(() => idsOf(page), SOON).toEqual([failed]);
    expect(open.complaints).toEqual([]);
  });

  it('gives the focus to the entry of a closed group, whatever had it when the group was opened', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    await page.getByRole('link', { name: 'started for over an hour' }).waitFor();
    await page.evaluate(
      "document.activeElement.blur(); [...document.querySelectorAll('.concerns a')].find((one) => /started/.test(one.textContent)).click()",
    );
    const close = page.getByRole('link', { name: 'Close the group' });
    await close.press('Enter');
    await close.waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate('document.activeElement.textContent'), SOON).toMatch(/^Stuck.*started/s);
  });

  it('takes the focus for itself only until a view is there', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    // Who closes something leaves the focus nowhere for a moment: here for longer than anything waits for a view.
    const left =
      "new Promise((done) => setTimeout(() => { document.querySelector('h1').blur(); setTimeout(() => done(document.activeElement.tagName), 2_100) }, 100))";
    expect(await page.evaluate(left)).toBe('BODY');
  });

  it('has the oldest on the tiles of what is in progress and what waits, and leads to them', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const tile = page.locator('a.tile', { hasText: 'In progress' });
    await expect
      .poll(() => tile.innerText(), SOON)
      .toMatch(/\n2\nthe oldest reported 1 h 3\d min ago; 1 more started$/);
    await page.locator('a.tile', { hasText: 'Waiting for a receipt' }).getByText('none waits').waitFor();
    await tile.click();
    await expect.poll(() => idsOf(page), SOON).toHaveLength(2);
    await beginAt(open, p.demo, `#/transactions/${stuck}`);
    expect(await page.getByRole('list', { name: 'Progress' }).getByRole('listitem').count()).toBe(4);
  });

  it('sorts what a list shows by a column', async () => {
    const page = await beginAt(open, p.demo, '#/transactions?status=ERROR');
    await expect.poll(async () => (await idsOf(page)).length, SOON).toBeGreaterThanOrEqual(2);
    const header = page.getByRole('columnheader', { name: 'Reported' });
    const times = () =>
      page.locator('tbody time').evaluateAll((all) => all.map((one) => one.getAttribute('datetime') ?? ''));
    await header.getByRole('button').press('Enter');
    expect(await header.getAttribute('aria-sort')).toBe('ascending');
    expect(await times()).toEqual((await times()).toSorted());
    await header.getByRole('button').press('Enter');
    expect(await header.getAttribute('aria-sort')).toBe('descending');
    expect(await times()).toEqual((await times()).toSorted().toReversed());
  });

  it('leads from an hour of the chart to the transactions of that hour', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    await page.getByText('Show as a table').click();
    await page
      .getByRole('table', { name: /^Last 24 hours/ })
      .getByRole('link')
      .last()
      .click();
    await page.getByRole('heading', { name: 'Transactions', level: 1 }).waitFor();
    const chips = page.getByRole('list', { name: 'Filters in force' }).getByRole('listitem');
    await expect
      .poll(() => chips.allInnerTexts(), SOON)
      .toMatchObject(
        [/^Reported (?:from|since midnight)/, /^Reported before/].map((text) => expect.stringMatching(text)),
      );
  });

  it('leads from a transaction to its asset, and from there to the transactions of the asset', async () => {
    const page = await beginAt(open, p.demo, '#/assets');
    const first = page.getByRole('table', { name: 'Assets' }).getByRole('link').first();
    const title = await first.innerText();
    await first.click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    const place = page.url();
    const [, asset] = place.split('#/assets/');
    const { transactions } = p.service.context;
    const [id, assetId] = [randomUUID(), asset ?? ''];
    await transactions.register({ id, nodeId: p.demo.node_id, collection: 'token_transactions', type: 1, assetId });
    await page.reload();
    await expect.poll(() => idsOf(page), SOON).toContain(id);
    await page.getByRole('table', { name: 'Transactions' }).getByRole('link').first().click();
    await page.getByRole('definition').getByRole('link', { name: title }).click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    expect(page.url()).toBe(place);
  });

  it('finds a record with Ctrl K by the beginning of its id, a name or a page, and begins an action', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const find = page.getByRole('combobox', { name: 'Find' });
    const options = page.getByRole('option');
    await page.keyboard.press('Control+k');
    await find.fill(failed.slice(0, 8));
    await expect.poll(() => options.count(), SOON).toBe(1);
    await page.keyboard.press('Enter');
    // The overview has the id too.
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor({ state: 'detached' });
    await page.locator(`.id[title="${failed}"]`).waitFor();
    await page.keyboard.press('Control+k');
    await find.fill('Acme Treas');
    await options.getByText('Acme Treasury').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Acme Treasury', level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await find.fill('rotate secret of demo');
    await options
      .getByText(/^Rotate the secret of /)
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
    const asked = page.getByRole('dialog', { name: /^Rotate the secret of .+\?$/ });
    await asked.waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.tagName'), SOON).toBe('SELECT');
    await page.keyboard.press('Escape');
    await asked.waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('dialog').count(), SOON).toBe(0);
    await page.keyboard.press('Meta+k');
    await find.fill('no such thing');
    await page.getByText('Nothing has this id or name.').waitFor();
    await page.keyboard.press('Escape');
    await find.waitFor({ state: 'detached' });
  });

  it('links to the transactions that failed since midnight, and updates live', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const tile = page.getByRole('link', { name: 'Failed today' });
    await expect.poll(() => tile.innerText(), SOON).toContain('\n1\n');
    await tile.click();
    // The overview has its error too, but no id.
    await expect.poll(() => idsOf(page), SOON).toEqual([failed]);
    await page.getByText('no gas').waitFor();
    await page.getByRole('button', { name: 'Remove the filter: Reported since midnight' }).click();
    await page.getByRole('group', { name: 'Status' }).getByRole('button', { name: 'Failed' }).click();
    await expect.poll(() => idsOf(page), SOON).toEqual([early, failed]);
    await page.getByLabel('Id or hash').fill('0xfe');
    await expect.poll(() => idsOf(page), SOON).toEqual([early]);
    await beginAt(open, p.demo, '#/overview');
    // An hour that is pointed at has numbers of its own.
    await page.mouse.move(0, 0);
    await expect.poll(() => page.locator('figure').innerText(), SOON).toMatch(/Done\s+0\s+Failed\s+[12]\s+Open\s+2/);
    const [id = ''] = await registered(p, 1);
    await applied(p, id, 4, { updated_at: ago(0) });
    await expect.poll(() => tile.innerText(), SOON).toContain('\n2\n');
  });

  it('shows every filter in force as a chip that ends it, counts with all of them, and finds what is stuck whatever the time', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    await page.getByRole('link', { name: 'Failed today' }).click();
    const chips = page.getByRole('list', { name: 'Filters in force' }).getByRole('listitem');
    await expect.poll(() => chips.allInnerTexts(), SOON).toEqual(['Reported since midnight']);
    const tab = (name: string) => page.getByRole('group', { name: 'Status' }).getByRole('button', { name });
    const today = page.getByRole('button', { name: 'Today' });
    expect(await today.getAttribute('aria-pressed')).toBe('true');
    await expect.poll(() => tab('Started').innerText(), SOON).toMatch(/0$/);
    // Its number is not of today, and says so.
    await expect.poll(() => tab('Stuck over an hour').innerText(), SOON).toMatch(/^Stuck over an hour, any time\s2$/);
    await tab('Stuck over an hour').click();
    await expect.poll(async () => (await idsOf(page))[0], SOON).toBe(stuck);
    await expect.poll(() => tab('Stuck over an hour').innerText(), SOON).toMatch(/2$/);
    expect(await chips.allInnerTexts()).toEqual([]);
    // The filter by time is kept for the other tabs, and the page says so.
    await page.getByText('the filter by time applies to the other tabs').waitFor();
    expect([await today.getAttribute('aria-pressed'), await today.isDisabled()]).toEqual(['false', true]);
    await page.getByRole('row').nth(1).getByText('Stuck for 1 d 2 h').waitFor();
    await tab('Failed').click();
    await page.getByLabel('Id or hash').fill(failed.slice(0, 8));
    await expect
      .poll(() => chips.allInnerTexts(), SOON)
      .toEqual([`Begins with “${failed.slice(0, 8)}”`, 'Reported since midnight']);
    await expect.poll(() => idsOf(page), SOON).toEqual([failed]);
    await page.getByRole('button', { name: 'Clear all' }).click();
    await expect.poll(() => chips.count(), SOON).toBe(0);
    await expect.poll(() => tab('Started').innerText(), SOON).toMatch(/1$/);
    expect(await tab('Stuck over an hour').innerText()).not.toContain('any time');
    expect(await today.getAttribute('aria-pressed')).toBe('false');
    await tab('All').click();
    await page.getByText('More filters').click();
    await page.getByLabel('Type code').fill('5');
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(await page.evaluate('location.hash')).toBe('#/overview');
  });

  it('tells the clock of the report from that of its arrival, and marks what is stuck on its own page', async () => {
    const page = await beginAt(open, p.demo, `#/transactions/${stuck}`);
    await page.getByText('Stuck for 1 d 2 h').waitFor();
    const facts = page.locator('.facts');
    expect(await facts.innerText()).toMatch(/Last reported\n.+\nLast received\n/);
    const [reported, received] = await facts
      .locator('time')
      .evaluateAll((times) => times.map((time) => time.getAttribute('datetime')));
    expect(Date.parse(received ?? '') - Date.parse(reported ?? '')).toBeGreaterThan(26 * 3_600_000 - 60_000);
    await page
      .getByRole('list', { name: 'Progress' })
      .getByText(/^reported 1 d 2 h ago; waits for/)
      .waitFor();
    // On a phone a step takes no more room than its text.
    await page.setViewportSize({ width: 390, height: 844 });
    const room =
      "Math.max(...Array.from(document.querySelectorAll('.timeline li'), (of) => of.getBoundingClientRect().bottom - of.lastElementChild.getBoundingClientRect().bottom))";
    expect(await page.evaluate<number>(room)).toBeLessThan(24);
    await page.setViewportSize({ width: 1280, height: 800 });
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
    expect(lines[0]).toBe('Status,Type,Collection,Id,Error,Reported,Hash');
    expect(lines.slice(1, -1).map((line) => line.split(',')[3])).toEqual(before);
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(async () => (await idsOf(page))[0], SOON).toBe(id);
  });

  it('a group is marked as seen with a note, and comes back when something joins it', async () => {
    const page = await beginAt(open, p.demo, '#/overview');
    const groups = page.getByRole('list', { name: 'What needs a decision' }).getByRole('link');
    await groups.filter({ hasText: 'no gas' }).click();
    const group = page.getByRole('region', { name: 'Group' });
    await group.getByLabel('Note for colleagues').fill('topped up at noon');
    await page.keyboard.press('Enter');
    await group.getByText(/^Seen by admin .*: .?topped up at noon/).waitFor();
    await expect.poll(() => groups.filter({ hasText: 'no gas' }).count(), SOON).toBe(0);
    const seen = page.getByRole('list', { name: 'Seen' }).getByRole('link');
    expect(await seen.count()).toBe(1);
    // It is kept by the server, where colleagues see it, and comes back by what joins it.
    await page.reload();
    await page.getByText('1 group seen').waitFor();
    const [another = ''] = await registered(p, 1);
    await applied(p, another, 4, { updated_at: ago(0), error: 'no gas' });
    await groups.filter({ hasText: '2 × no gas' }).waitFor();
    expect(open.complaints).toEqual([]);
  });

  // In a quick run test/console/session.test.ts has it.
  thoroughly('shows nothing that the token may not read', async () => {
    const { credentials } = await createdClient(p, await p.clientToken(), { scopes: ['users:read'] });
    await using own = await openConsole(p);
    await signIn(own.page, { client: credentials });
    await own.page.getByText('Nothing needs attention.').waitFor();
    expect(await own.page.locator('.tile, figure').count()).toBe(0);
    await own.page.getByText('you need the permission transactions:read').waitFor();
    expect(own.complaints).toEqual([]);
  });
});
