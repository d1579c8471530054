import type { Locator, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { signIn, useConsole } from '../support/console/console-page.ts';
import { type OpenPage, openPage, takePicture } from '../support/harness/browser.ts';
import { describeReal } from '../support/services/real.ts';

const SOON = { interval: 80 };
/** No double has all of its digits. */
const EXACT = '0.1000000000000000000001';

const p = useConsole();

async function openConsole(place = ''): Promise<OpenPage> {
  const open = await openPage(p.url, '/console/');
  await signIn(open.page, p.demo);
  if (place !== '') await open.page.goto(place);
  return open;
}

function condition(page: Page, number: string): Locator {
  return page.getByRole('group', { name: `Condition ${number}`.trim(), exact: true });
}

async function fillCondition(given: Locator, field: string, value: string): Promise<void> {
  await given.getByLabel('Field').selectOption(field);
  await given.getByLabel('Operator').selectOption('gte');
  await given.getByLabel('Value').fill(value);
  await given.getByRole('combobox', { name: 'Currency' }).fill(p.demo.network_currency_id);
}

/** Follows the links from the accounts to the form of a new rule. */
async function goToNewRule(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Accounts' }).click();
  await page.getByLabel('Name contains').fill('acme trea');
  await page.getByRole('link', { name: 'Acme Treasury' }).click();
  await page.locator(`[aria-label="Wallets"] .id[title="${p.demo.wallet_id}"] a`).click();
  await page.getByRole('table', { name: 'Networks' }).waitFor();
  await page.getByRole('link', { name: 'New rule' }).click();
}

async function fillRule(page: Page): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill('Refill');
  await page.getByRole('combobox', { name: 'Network' }).fill(p.demo.network_id);
  await page.getByRole('combobox', { name: 'Currency of the rule' }).fill(p.demo.network_currency_id);
  await page.getByLabel('Amount').fill(EXACT);
  await page.getByRole('combobox', { name: 'Target wallet' }).fill(p.demo.target_wallet_id);
  await fillCondition(condition(page, ''), 'target.balance', EXACT);
  await page.getByRole('button', { name: 'Add condition' }).click();
  await expect.poll(() => condition(page, '2').getByLabel('Field').evaluate(isFocused), SOON).toBe(true);
  await fillCondition(condition(page, '2'), 'source.balance', '1e-30');
  await condition(page, '2').getByRole('button', { name: 'Wrap in group' }).click();
  await page.getByRole('group', { name: 'Group 2', exact: true }).getByLabel('Holds where').selectOption('not');
}

const isFocused = (element: Element) => element === element.ownerDocument.activeElement;

/** Corrects a field that was refused: neither it nor the form says any longer that it is wrong. */
async function correct(page: Page, field: Locator, text: string): Promise<void> {
  await expect.poll(() => field.getAttribute('aria-invalid'), SOON).toBe('true');
  expect(await page.getByRole('alert').count()).toBe(1);
  await field.fill(text);
  await expect.poll(() => field.getAttribute('aria-invalid'), SOON).toBe('false');
  expect(await page.getByRole('alert').count()).toBe(0);
}

/** Saves with values that are no numbers: each field says so, and nothing that was typed is lost. */
async function saveWithoutNumbers(page: Page): Promise<void> {
  const [amount, priority] = [page.getByLabel('Amount'), page.getByLabel('Priority', { exact: true })];
  await amount.fill('1 000');
  await priority.fill('first');
  await page.getByText('Not evaluated yet. Priority: enter a whole number').waitFor();
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await save.click();
  await page.locator('.issue', { hasText: 'Enter a number, such as 1000 or 0.5' }).waitFor();
  expect([await amount.inputValue(), await priority.inputValue()]).toEqual(['1 000', 'first']);
  await priority.fill('');
  await expect.poll(() => save.isEnabled(), SOON).toBe(true);
  await correct(page, amount, '2');
}

/** Types the time of a transfer by the keyboard, its year with more digits than a year has. */
async function typeTransfer(page: Page): Promise<void> {
  await page.getByLabel('Type', { exact: true }).selectOption('permissionless_transfer_limit');
  await page.getByRole('button', { name: 'Add transfer' }).click();
  const transfer = page.getByRole('group', { name: 'Transfer 1' });
  await transfer.getByLabel('Amount').fill('1');
  await transfer.getByLabel('Made at').focus();
  await page.keyboard.type('1124202610');
  expect(await transfer.getByLabel('Made at').inputValue()).toMatch(/^2026-11-24T(10|22):/);
  await transfer.getByLabel('Made at').fill('20261-11-24T10:00:00');
  await transfer.getByRole('button', { name: 'Remove transfer 1' }).click();
  await transfer.waitFor({ state: 'detached' });
  await page.getByLabel('Type', { exact: true }).selectOption('auto_transfer');
}

describeReal('chromium', 'rules in the console', () => {
  it('a rule is created with a preview; of concurrent edits the later one sees both versions; the history has all', async () => {
    await using first = await openConsole();
    const { page } = first;
    await goToNewRule(page);
    await typeTransfer(page);
    await fillRule(page);

    await page.getByLabel('Balance of the target wallet').fill('0.1');
    await page.getByLabel('Balance of this wallet').fill('0');
    await page.getByText('It would not fire').waitFor();
    // It would not with one of the two balances either.
    await expect
      .poll(() => page.getByRole('list', { name: 'Why' }).innerText(), SOON)
      .toContain('balance of this wallet 0, needed ≥ 0.000000');
    expect(await condition(page, '1').innerText()).toContain(
      `is false balance of the target wallet 0.1, needed ≥ ${EXACT}`,
    );
    await page.getByLabel('Balance of the target wallet').fill(EXACT);
    await page.getByText('It would fire').waitFor();
    await takePicture(page, 'console-rule', 1700);

    await page.getByRole('combobox', { name: 'Target wallet' }).fill('no id');
    // What the picker offers may cover the button until it is closed.
    await page.getByText('Nothing matches.').waitFor();
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Create the rule' }).click();
    await page.getByText('Choose a target wallet').first().waitFor();
    await expect.poll(() => page.getByRole('combobox', { name: 'Target wallet' }).evaluate(isFocused), SOON).toBe(true);
    await correct(page, page.getByRole('combobox', { name: 'Target wallet' }), p.demo.target_wallet_id);
    const value = condition(page, '1').getByLabel('Value');
    await value.fill('much');
    await page.getByRole('button', { name: 'Create the rule' }).click();
    await correct(page, value, EXACT);
    await page.getByRole('button', { name: 'Create the rule' }).click();
    await page.getByText('Activity: version 1').click();
    const history = page.getByRole('table', { name: 'Activity' });
    await history.getByText('Created.').waitFor();
    expect(await page.getByLabel('Balance of the target wallet').inputValue()).toBe(EXACT);
    expect(await page.getByLabel('Balance of this wallet').inputValue()).toBe('0');
    await page.getByText('It would fire').waitFor();
    expect(await page.getByLabel('Amount').inputValue()).toBe(EXACT);
    expect(await condition(page, '1').getByLabel('Value').inputValue()).toBe(EXACT);
    expect(await condition(page, '2.1').getByLabel('Value').inputValue()).toBe(`0.${'0'.repeat(29)}1`);

    await using second = await openConsole(page.url());
    await second.page.getByLabel('Name', { exact: true }).fill('Refill of another one');
    await second.page.keyboard.press('Enter');
    await second.page.getByText('Saved as version 2.').waitFor();
    await second.page.getByRole('heading', { name: 'Refill of another one' }).waitFor();
    await expect.poll(() => second.page.getByLabel('Name', { exact: true }).evaluate(isFocused), SOON).toBe(true);

    await saveWithoutNumbers(page);
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('dialog', { name: 'Leave without saving?' }).getByText('Keep editing').click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const weaker = page.getByRole('dialog', { name: 'Less protection than version 1' });
    await weaker.getByText('The amount is higher.').waitFor();
    await weaker.getByRole('button', { name: 'Save with less protection' }).click();
    const versions = page.getByRole('dialog').getByRole('table', { name: 'Both versions' });
    await expect.poll(() => versions.innerText(), SOON).toMatch(/Refill of another one\s+Refill\n/);
    expect(await versions.innerText()).toMatch(new RegExp(`Amount \\(differs\\)\\s+${EXACT}\\s+2`));
    await page.getByRole('button', { name: 'Overwrite version 2' }).click();
    await page.getByText('Saved as version 3.').waitFor();

    // Who decides by an earlier version is told so, and shown the present one.
    await second.page.getByRole('button', { name: 'Disable the rule' }).click();
    const asked = second.page.getByRole('dialog');
    await asked.getByRole('button', { name: 'Disable the rule' }).click();
    await asked.getByText('Someone else changed the rule.').waitFor();
    await asked.getByRole('button', { name: 'Cancel' }).click();
    await expect.poll(() => second.page.getByLabel('Name', { exact: true }).inputValue(), SOON).toBe('Refill');
    expect(await second.page.getByLabel('Amount').inputValue()).toBe('2');

    await page.getByRole('button', { name: 'Disable the rule' }).click();
    await expect.poll(() => page.getByRole('button', { name: 'Cancel' }).evaluate(isFocused), SOON).toBe(true);
    await page.getByRole('dialog').getByRole('button', { name: 'Disable the rule' }).click();
    await expect.poll(() => history.innerText(), SOON).toContain('Disabled.');
    expect(await history.innerText()).toContain('Refill of another one → Refill');
    const isolated = await history
      .locator('del, ins')
      .evaluateAll((all) => all.map((each) => each.ownerDocument.defaultView?.getComputedStyle(each).unicodeBidi));
    expect(new Set(isolated)).toEqual(new Set(['isolate']));
    expect(await history.getByRole('row').count()).toBe(5);
    expect(await history.getByRole('link').first().getAttribute('href')).toMatch(/^#\/audit\?correlationId=/);

    await page.getByRole('button', { name: 'Activate the rule' }).waitFor();
    const [own, other] = [p.demo.wallet_id, p.demo.target_wallet_id].map((id) => JSON.stringify(id));
    await page.evaluate(`location.hash = location.hash.replace(${own}, ${other})`);
    await page.getByText('The wallet has no rule with this id').waitFor();
    expect(await page.getByRole('button', { name: 'Activate the rule' }).count()).toBe(0);
    // The browser itself names the answer to the preview of what is not valid.
    expect([...first.complaints, ...second.complaints].filter((told) => !told.includes('status of 400'))).toEqual([]);
  });
});
