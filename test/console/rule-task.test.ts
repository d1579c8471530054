import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { beginAt, openConsole, useConsole } from '../support/console/console-page.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { limit, rulesOf } from '../support/wallet-rules/rules.ts';

const SOON = { interval: 80 };

const p = useConsole();
/** The page of all cases. */
const open = beforeTests(() => openConsole(p));

const sentence = (page: Page) => page.getByLabel('What the rule does');

/** Types into the input that has the focus, which is the next one by the keyboard. */
async function typeAt(page: Page, label: string, text: string, isPicked = false): Promise<void> {
  const focused = () => page.evaluate("document.activeElement?.labels?.[0]?.textContent ?? ''");
  for (let steps = 0; (await focused()) !== label; steps += 1) {
    if (steps > 60) throw new Error(`the keyboard does not reach ${label}`);
    await page.keyboard.press('Tab');
  }
  await page.keyboard.type(text);
  if (!isPicked) return;
  await page.locator(':focus[aria-expanded="true"]').waitFor();
  await page.keyboard.press('Enter');
}

/** Writes a rule that tops a wallet up below 100, with the keyboard alone. */
async function topUp(page: Page): Promise<void> {
  await typeAt(page, 'Name', 'Top up below 100');
  await typeAt(page, 'Network', 'Ethereum main', true);
  await typeAt(page, 'Currency of the rule', 'EURC', true);
  await typeAt(page, 'Value', '100');
  await typeAt(page, 'Amount', '250.50');
  await typeAt(page, 'Target wallet', 'Custom', true);
}

describeReal('chromium', 'a rule that tops up a wallet', () => {
  beforeAll(async () => {
    await rulesOf(p, await p.clientToken()).created(limit({ name: 'Daily maximum', priority: 9 }));
  });

  const DEVICES: [where: string, size: { width: number; height: number }][] = [
    ['on a desktop', { width: 1280, height: 800 }],
    ['on a phone', { width: 390, height: 844 }],
  ];

  it.each(inTurn(DEVICES, 2, 0))(
    'is created %s with the keyboard only, described in words, and previewed with the other rules of the wallet',
    async (_where, size) => {
      await open.page.setViewportSize({ width: 1280, height: 800 });
      const page = await beginAt(open, p.demo, `#/wallets/${p.demo.wallet_id}/rules/new`);
      await page.setViewportSize(size);
      await topUp(page);
      const words =
        /^When the balance of the target wallet falls below 100 EURC, transfer 250\.50 EURC from Acme Treasury › ethereum …[0-9a-f]{4} to Customer 1 › ethereum …[0-9a-f]{4}\.$/;
      await expect.poll(async () => (await sentence(page).innerText()).replaceAll(/\s+/g, ' '), SOON).toMatch(words);
      await page.getByText('Enter a balance to test the rule.').waitFor();
      await page.getByLabel('Balance of the target wallet').fill('120');
      await page.getByText('It would not fire').waitFor();
      await page.getByLabel('Balance of the target wallet').fill('99.99');
      await page.getByText('It would fire').waitFor();
      await page.getByRole('button', { name: 'All rules of the wallet' }).click();
      const others = page.getByRole('list', { name: 'Other active rules of the wallet' });
      await others.getByText('Daily maximum').waitFor();
      await page.getByRole('button', { name: 'Create the rule' }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('Activity: version 1').click();
      await page.getByRole('table', { name: 'Activity' }).getByText('Created.').waitFor();
      expect(await page.getByLabel('Balance of the target wallet').inputValue()).toBe('99.99');
      expect(open.complaints).toEqual([]);
    },
  );

  it('is found in the list of all rules by the time of its change, with its wallet and author by name', async () => {
    const since = new Date().toISOString();
    await rulesOf(p, await p.loginToken()).created(limit({ name: 'Changed today' }));
    await open.page.setViewportSize({ width: 1280, height: 800 });
    const page = await beginAt(open, p.demo, `#/rules?changedSince=${encodeURIComponent(since)}`);
    const rows = page.getByRole('table', { name: 'Rules' }).locator('tbody tr');
    await expect.poll(() => rows.count(), SOON).toBe(1);
    await expect.poll(() => rows.first().innerText(), SOON).toMatch(/Changed today\s+.* › ethereum[\s\S]*\badmin\b/);
    await page.getByLabel('Type').selectOption('auto_transfer');
    await page.getByText('No rule matches.').waitFor();
    await page.getByRole('button', { name: 'Show all rules' }).click();
    await page.getByRole('table', { name: 'Rules' }).getByText('Daily maximum').waitFor();
  });
});
