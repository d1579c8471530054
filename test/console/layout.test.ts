import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import {
  beginAt,
  goTo,
  openAccount,
  openConsole,
  SOON,
  shown,
  signIn,
  useConsole,
} from '../support/console/console-page.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const p = useConsole();
const open = beforeTests(() => openConsole(p, { colorScheme: 'light', timezoneId: 'Asia/Kolkata', locale: 'en-GB' }));

/** The titles of the items in the navigation. */
function items(page: Page): Promise<string[]> {
  return page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
}

const background = (page: Page) => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');

describeReal('chromium', 'the layout of the console', () => {
  // In a quick run test/console/session.test.ts has it.
  thoroughly('shows only permitted views; the URL of another view names the missing permission', async () => {
    const { credentials } = await createdClient(p, await p.clientToken(), { scopes: ['accounts:read'] });
    await using own = await openConsole(p);
    await signIn(own.page, { client: credentials });
    await own.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(await items(own.page)).toContain('Accounts');
    expect(await items(own.page)).not.toContain('Audit');
    await goTo(own.page, '#/audit');
    expect(await shown(own.page)).toContain('you do not have the permission audit:read');
  });

  it('loads a view again after its module could not be fetched', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    const missing = '**/views/profile.ts';
    await page.route(missing, (route) => route.abort(), { times: 2 });
    await page.evaluate("location.hash = '#/profile'");
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Change the password' }).waitFor();
  });

  it('opens the navigation with a button on a phone, and closes it when a view is chosen', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    await page.setViewportSize({ width: 390, height: 844 });
    const navigation = page.getByRole('navigation', { name: 'Main' });
    expect(await navigation.isVisible()).toBe(false);
    expect((await page.locator('.bar').boundingBox())?.height).toBe(56);
    await page.getByRole('button', { name: 'Menu' }).click();
    await navigation.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    await expect.poll(() => navigation.isVisible(), SOON).toBe(false);
    await page.setViewportSize({ width: 1280, height: 800 });
    expect((await page.locator('.side').boundingBox())?.width).toBe(220);
  });

  it('names no keys where there is no keyboard', async () => {
    await using own = await openConsole(p, {
      hasTouch: true,
      isMobile: true,
      viewport: { width: 390, height: 844 },
    });
    await signIn(own.page, p.demo);
    await own.page.getByRole('button', { name: 'Menu' }).click();
    await own.page.getByRole('button', { name: 'Find' }).waitFor();
    expect(await own.page.locator('kbd').isVisible()).toBe(false);
    expect(await open.page.locator('kbd').isVisible()).toBe(true);
  });

  it('remembers the colour scheme and the time zone in the browser', async () => {
    const page = await beginAt(open, p.demo, `#/accounts/${p.demo.account_id}`);
    const time = page.locator('main time').first();
    const [light, local] = [await background(page), await time.innerText()];
    await openAccount(page);
    await page.getByLabel('Dark').check();
    await page.getByLabel('UTC').check();
    await page.keyboard.press('Escape');
    await expect.poll(() => background(page), SOON).not.toBe(light);
    await expect.poll(() => time.innerText(), SOON).not.toBe(local);
    const kept = () => page.evaluate('({ ...localStorage })');
    expect(await kept()).toMatchObject({ 'portcullis.theme': 'dark', 'portcullis.times': 'utc' });
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await background(page)).not.toBe(light);
    await beginAt(open, p.demo, '#/accounts');
    await openAccount(page);
    await page.getByLabel('System').check();
    await page.getByLabel('Local').check();
    await page.keyboard.press('Escape');
    expect(Object.keys(Object(await kept())).toSorted()).toEqual(['portcullis.client_id', 'portcullis.session']);
  });

  it('opens an item with a click anywhere on its row, and copies an id with a click', async () => {
    const page = await beginAt(open, p.demo, '#/accounts');
    const row = page.getByRole('row').filter({ hasText: 'Acme Treasury' });
    await row.hover();
    await row.locator('.id').hover();
    await row.getByRole('button', { name: `Copy ${p.demo.account_id}` }).click();
    await row.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(p.demo.account_id);
    await row.getByText('Organisation').click();
    await page.getByRole('heading', { name: 'Acme Treasury' }).waitFor();
  });

  it('selects by name with the keyboard only; a pasted id becomes its name, and an unknown one stays', async () => {
    const page = await beginAt(open, p.demo, `#/wallets/${p.demo.wallet_id}`);
    await page.getByRole('button', { name: 'Assign a network' }).press('Enter');
    const picker = page.getByRole('combobox', { name: 'Network' });
    await picker.fill(p.demo.network_id);
    await expect.poll(() => picker.inputValue(), SOON).toBe('Ethereum mainnet');
    const unknown = '00000000-0000-4000-8000-000000000000';
    await picker.fill(unknown);
    await picker.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await picker.inputValue()).toBe(unknown);
    await picker.fill('sepo');
    await page.getByRole('option', { name: 'Ethereum Sepolia' }).waitFor();
    await picker.press('Enter');
    await expect.poll(() => picker.inputValue(), SOON).toBe('Ethereum Sepolia');
    await picker.press('Enter');
    await page.getByText('Ethereum Sepolia is assigned to the wallet.').waitFor();
    await page.getByRole('table', { name: 'Networks' }).getByText('Ethereum Sepolia').waitFor();
  });
});
