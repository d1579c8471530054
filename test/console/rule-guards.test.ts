import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { faults } from '../support/console/axe.ts';
import { goTo, openConsole, SOON, shown, signIn, useConsole } from '../support/console/console-page.ts';
import type { OpenPage } from '../support/harness/browser.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { addBitcoin } from '../support/wallet-rules/bitcoin.ts';
import { autoTransfer, leaf, rulesOf } from '../support/wallet-rules/rules.ts';

const p = useConsole();
/** A page that stays signed in, for all cases. */
let open: OpenPage;
let page: Page;
let bitcoin: Awaited<ReturnType<typeof addBitcoin>>;

const combobox = (name: string) => page.getByRole('combobox', { name, exact: true });
const dialog = (name: string | RegExp) => page.getByRole('dialog', { name });
const button = (name: string | RegExp, of: Page | Locator = page) => of.getByRole('button', { name, exact: true });

/** Types a text into a picker, and returns what reads its options: those for an earlier text stay until the others are there. */
async function offering(name: string, text: string): Promise<() => Promise<string[]>> {
  await combobox(name).click();
  await combobox(name).fill(text);
  const list = page.getByRole('listbox', { name });
  await list.or(page.getByText('Nothing matches.')).first().waitFor();
  return () => list.getByRole('option').allInnerTexts();
}

/** Fills in a rule that pays 0.3 of the currency of a wallet if its balance is below 1. */
async function fillRule(currencyId: string, networkId: string, targetId: string): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill('Refill');
  await combobox('Network').fill(networkId);
  await combobox('Currency of the rule').fill(currencyId);
  await page.getByLabel('Value').fill('1');
  await page.getByLabel('Amount').fill('0.3');
  await combobox('Target wallet').fill(targetId);
}

/** A rule of the demo's wallet that waits for two approvals, unless told otherwise. */
function ruleOf(changes: object = {}, type = 'auto_with_approve') {
  const { network_id, network_currency_id, target_wallet_id } = p.demo;
  const rule_logic = {
    and: [
      leaf({ field: 'target.balance', value: 100, network_currency_id }),
      leaf({ field: 'source.balance', op: 'gt', network_currency_id }),
    ],
  };
  const sign_and_approve_rule = { min_user_count: 2 };
  return autoTransfer(
    { name: 'Top up', network_id, network_currency_id, sign_and_approve_rule, ...changes },
    { type, rule_logic, target_wallet_id },
  );
}

const guarded = async () => rulesOf(p, await p.loginToken()).created(ruleOf());

const COLOURS = [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { forcedColors: 'active' }] as const;

/** Checks what is open: no accessibility violation in any colours, and nothing that scrolls sideways on a phone. In a quick run each dialog has other colours and widths. */
async function expectAccessible(turn: number): Promise<void> {
  for (const colours of inTurn(COLOURS, 3, turn)) {
    await page.emulateMedia({ colorScheme: null, forcedColors: null, ...colours });
    expect(await faults(page)).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null, forcedColors: null });
  for (const width of inTurn([360, 768, 3840, 1440], 2, turn)) {
    await page.setViewportSize({ width, height: 900 });
    const beyond = await page.evaluate<number[]>(
      "[document.documentElement, ...document.querySelectorAll('dialog[open]')].map((of) => of.scrollWidth - of.clientWidth)",
    );
    expect([width, Math.max(...beyond)]).toEqual([width, 0]);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

const ruleAt = (id: string) => goTo(page, `#/wallets/${p.demo.wallet_id}/rules/${id}`);
const save = () => button('Save').click();

describeReal('chromium', 'what guards a rule in the console', () => {
  beforeAll(async () => {
    bitcoin = await addBitcoin(p);
    open = await openConsole(p, { viewport: { width: 1440, height: 900 } });
    ({ page } = open);
    await signIn(page, p.demo);
  });
  afterAll(() => open[Symbol.asyncDispose]());
  beforeEach(async () => {
    const leave = button('Leave', dialog('Leave without saving?'));
    const rules = page.getByRole('heading', { level: 1, name: 'Rules', exact: true });
    await page.evaluate("location.hash = '#/rules'");
    await leave.or(rules).waitFor();
    if (await leave.isVisible()) await leave.click();
    await rules.waitFor();
    open.forget();
  });
  it('offers only networks, currencies and target wallets that the wallet can reach', async () => {
    await goTo(page, `#/wallets/${bitcoin.wallet_id}/rules/new`);
    await expect.poll(await offering('Network', 'm'), SOON).toEqual(['Bitcoin mainnet\nbitcoin']);
    await expect.poll(await offering('Currency of the rule', ''), SOON).toEqual(['BTC · Bitcoin mainnet\nBitcoin']);
    await expect.poll(await offering('Target wallet', 'customer'), SOON).toEqual([]);
    await page.evaluate(`location.hash = '#/wallets/${p.demo.wallet_id}/rules/new'`);
    await button('Leave', dialog('Leave without saving?')).click();
    await page.locator('.trail').getByText('ethereum').waitFor();
    const currencies = await offering('Currency of the rule', '');
    expect((await currencies()).join()).not.toContain('BTC');
    const targets = await offering('Target wallet', 'acme');
    await expect.poll(async () => (await targets()).join(), SOON).not.toContain('bitcoin');
  });

  it('takes a target on another chain by its id, and asks to confirm', async () => {
    await goTo(page, `#/wallets/${bitcoin.wallet_id}/rules/new`);
    await fillRule(bitcoin.currency_id, bitcoin.network_id, p.demo.target_wallet_id);
    const warning = 'The target wallet is on ethereum, but the network is on bitcoin.';
    await page.locator('.preview').getByText(warning).waitFor();
    await button('Create the rule').click();
    const asked = dialog('Is this what you mean?');
    await asked.getByText(warning).waitFor();
    await expect
      .poll(() => button('Keep editing', asked).evaluate((of) => of === of.ownerDocument.activeElement), SOON)
      .toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.getByLabel('Amount').inputValue()).toBe('0.3');
    await button('Create the rule').click();
    await button('Save anyway', asked).click();
    await page.getByText('Rule created. It is active.').waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('waits for an approval only where one is required', async () => {
    await goTo(page, `#/wallets/${p.demo.wallet_id}/rules/new`);
    await page.getByLabel('Timing').selectOption('Wait for an approval');
    const isApproved = page.getByLabel('Others must sign and approve');
    expect(await isApproved.isChecked()).toBe(true);
    expect(await page.getByLabel('Approvals required').inputValue()).toBe('1');
    expect(await shown(page, '.sentence')).toMatch(/once it is approved; 1 approval needed\.$/);
    await isApproved.click();
    expect(await page.getByLabel('Timing').inputValue()).toBe('auto');
    expect(await shown(page, '.sentence')).not.toMatch(/approv/);
    await isApproved.click();
    expect(await page.getByLabel('Timing').inputValue()).toBe('auto_with_approve');
  });

  it('shows both sentences and asks before a rule is weakened, and asks nothing if it becomes stricter', async () => {
    await ruleAt(await guarded());
    await page.getByLabel('Approvals required').fill('3');
    await save();
    await page.getByText('Saved as version 2.').waitFor();
    await page.getByLabel('Others must sign and approve').click();
    await page.getByLabel('Amount').fill('500');
    await page.getByRole('group', { name: 'Condition 2', exact: true }).getByRole('button', { name: 'Remove' }).click();
    await save();
    const asked = dialog('Less protection than version 2');
    await expect.poll(() => asked.innerText(), SOON).toContain('transfer 500 EURC from Acme Treasury');
    const sentences = (await asked.locator('.both p').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '));
    expect(sentences[0]).toMatch(
      /^When the balance of the target wallet falls below 100 EURC and .* transfer 50 EURC .* once it is approved; 3 approvals needed\.$/,
    );
    expect(sentences[1]).toMatch(
      /^When the balance of the target wallet falls below 100 EURC, transfer 500 EURC .* at once; no approval needed\.$/,
    );
    expect(await asked.getByRole('list', { name: 'Less protection' }).getByRole('listitem').allInnerTexts()).toEqual([
      ...['It transfers at once instead of waiting for an approval.', 'No approval is needed any more.'],
      ...['The amount is higher.', 'A condition is removed or less strict.'],
    ]);
    await expectAccessible(0);
    await button('Keep editing', asked).click();
    await page.getByText('Not saved yet.').waitFor();
    await page.getByLabel('Reason for the change').fill('The treasury takes the risk.');
    await save();
    await button('Save with less protection', asked).click();
    await page.getByText('Saved as version 3.').waitFor();
    await page.getByText('Activity: version 3').click();
    await page.getByRole('table', { name: 'Activity' }).getByText('“The treasury takes the risk.”').waitFor();
  });

  it('overwrites the version of someone else with less protection only after both sentences', async () => {
    const id = await guarded();
    await ruleAt(id);
    await page.getByLabel('Name', { exact: true }).fill('Mine');
    const theirs = ruleOf({ sign_and_approve_rule: { min_user_count: 5 } });
    await rulesOf(p, await p.clientToken()).replace(id, theirs);
    await save();
    const conflict = dialog('The rule was changed by someone else');
    await conflict.getByText('Fewer approvals are needed: 2 instead of 5.').waitFor();
    expect(await conflict.locator('.both p').count()).toBe(2);
    await expectAccessible(1);
    await button('Keep editing', conflict).click();
  });

  it('D8-13 restores an older version: fills the form, shows the difference, and keeps the reason', async () => {
    const id = await guarded();
    const later = ruleOf({ priority: 7, sign_and_approve_rule: undefined }, 'auto');
    await rulesOf(p, await p.loginToken()).replace(id, later);
    await ruleAt(id);
    await page.getByText('Activity: version 2').waitFor();
    await expect
      .poll(() => shown(page, 'summary:has-text("Activity")'), SOON)
      .toMatch(/^Activity: version 2, changed .* by admin$/);
    await page.getByText('Activity: version 2').click();
    const activity = page.getByRole('table', { name: 'Activity' });
    await expect.poll(() => activity.locator('.both p').first().innerText(), SOON).toMatch(/2 approvals needed/);
    // Names come after the rest.
    await expect
      .poll(async () => (await activity.innerText()).replaceAll(/\s+/g, ' '), SOON)
      .toContain('through Demo client');
    const told = (await activity.innerText()).replaceAll(/\s+/g, ' ');
    for (const words of ['Priority: – → 7', 'Created.']) expect(told).toContain(words);
    for (const name of ['sign and approve', 'min_user', 'user count', 'rule logic', 'auto_'])
      expect(told).not.toContain(name);
    expect(await button('Restore version 2').count()).toBe(0);
    await button('Restore version 1').click();
    const restoring = page.getByRole('region', { name: 'Restoring' });
    await restoring.getByText('Approvals required').waitFor();
    await restoring.getByText('Version 1 is in the form, and not saved yet. It changes:').waitFor();
    const seen =
      '(() => { const { top, bottom } = document.activeElement.getBoundingClientRect(); return [document.activeElement.ariaLabel, top >= 0 && bottom <= innerHeight]; })()';
    await expect.poll(() => page.evaluate(seen), SOON).toEqual(['Restoring', true]);
    expect(await restoring.getByRole('button').allInnerTexts()).toEqual(['Save it as version 3', 'Keep version 2']);
    expect((await restoring.innerText()).replaceAll(/\s+/g, ' ')).toContain(
      'Timing: Transfer at once → Wait for an approval',
    );
    expect(await page.getByLabel('Approvals required').inputValue()).toBe('2');
    await expectAccessible(2);
    const saveIt = restoring.getByRole('button', { name: 'Save it as version 3' });
    await saveIt.click();
    // The reason is asked for beside the button.
    const reason = restoring.getByLabel('Why is version 1 restored?');
    await reason.waitFor();
    expect(await page.getByLabel('Reason for the change').count()).toBe(0);
    expect(
      await reason.evaluate((of) => (of as unknown as { validity: { valueMissing: boolean } }).validity.valueMissing),
    ).toBe(true);
    await reason.fill('Ticket 7: it must wait again.');
    await saveIt.click();
    await page.getByText('Saved as version 3.').waitFor();
    await activity.getByText('“Ticket 7: it must wait again.”').waitFor();
    await restoring.waitFor({ state: 'detached' });
    expect(open.complaints).toEqual([]);
  });

  it('says of a preview what it is: what was typed and when, how many approvals, and that the balance of the payer is not known', async () => {
    await ruleAt(await guarded());
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText('The real balances are not known here').waitFor();
    await preview.getByLabel('Balance of the target wallet').fill('99');
    await preview.getByLabel('Balance of this wallet').fill('0,5');
    await preview.getByText('Use a point: 0.5').waitFor();
    await preview.getByLabel('Balance of this wallet').fill('200');
    await preview.getByText('It would fire').waitFor();
    for (const words of [/with what you typed, as of .*\d:\d\d:\d\d/, /2 approvals would be needed\./])
      expect((await preview.innerText()).replaceAll(/\s+/g, ' ')).toMatch(words);
    expect(await preview.innerText()).not.toContain('is not known: check');
    await page.getByLabel('Amount').fill('201');
    await preview.getByText('The paying wallet would not cover it').waitFor();
    await page.getByRole('group', { name: 'Condition 2', exact: true }).getByRole('button', { name: 'Remove' }).click();
    await preview.getByText('It would fire').waitFor();
    await preview.getByText('The balance of the paying wallet is not known: check that it covers').waitFor();
  });

  it('says in words what is wrong with what was typed, at its field', async () => {
    await goTo(page, `#/wallets/${p.demo.wallet_id}/rules/new`);
    await fillRule(p.demo.network_currency_id, p.demo.network_id, 'Custom');
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText('Not evaluated yet. Target wallet: choose a target wallet.').waitFor();
    // What no number has is refused while it is typed, and not read back in the sentence.
    await page.getByLabel('Amount').fill('everything above 10');
    await page.getByText('Enter a number, such as 1000 or 0.5', { exact: true }).waitFor();
    expect(await shown(page, '.sentence')).not.toContain('everything');
    await page.getByLabel('Amount').fill('0,5');
    await page.getByLabel('Priority', { exact: true }).fill('101');
    await page.keyboard.press('Escape');
    await button('Create the rule').click();
    const told = page.getByRole('alert');
    await told.getByText('Nothing was saved. Correct the marked fields.').waitFor();
    const issues = await page.locator('.issue').allInnerTexts();
    expect(issues).toEqual(['Enter a whole number from 1 to 100', 'Use a point: 0.5', 'Choose a target wallet']);
    expect(await page.locator('main').innerText()).not.toMatch(/UUID|must be|hexadecimal/);
  });

  it('opens a list of options upward where there is no space below, and breaks no name', async () => {
    await goTo(page, `#/wallets/${p.demo.wallet_id}/rules/new`);
    const target = combobox('Target wallet');
    await target.evaluate((of) => of.scrollIntoView({ block: 'end' }));
    await target.fill('customer');
    const list = page.getByRole('listbox', { name: 'Target wallet' });
    await list.waitFor();
    const bottom = async () => {
      const box = await list.boundingBox();
      return box ? box.y + box.height : Number.NaN;
    };
    // It is placed once more when its options are there.
    await expect.poll(bottom, SOON).toBeLessThanOrEqual((await target.boundingBox())?.y ?? 0);
    expect(await bottom()).toBeLessThanOrEqual(900);
    for (const width of [1440, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const columns = await page.evaluate<number>(
        "getComputedStyle(document.querySelector('form .leaf')).gridTemplateColumns.split(' ').length",
      );
      expect([width, columns]).toEqual([width, 2]);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  it('asks before somebody becomes an admin', async () => {
    await goTo(page, '#/supervisors');
    await button('New supervisor').click();
    await page.getByLabel('Username').fill('omar');
    await page.getByLabel('First password').fill('a long password');
    await page.getByLabel('Role').selectOption('admin');
    await button('Create the supervisor').click();
    const asked = dialog('Make omar an admin?');
    await asked.getByText('An admin may do everything').waitFor();
    await button('Cancel', asked).click();
    await page.getByLabel('Role').selectOption('operator');
    await button('Create the supervisor').click();
    await page.getByText('omar created.').waitFor();
    await button('omar').click();
    const sheet = dialog('omar');
    await sheet.getByLabel('Role').selectOption('admin');
    await button('Change the role', sheet).click();
    await asked.getByText('Now: Operator: reads and changes.').waitFor();
    await expectAccessible(3);
    await button('Change the role', asked).click();
    await page.getByText('The role of omar is now admin.').waitFor();
  });
});
