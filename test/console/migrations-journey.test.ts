import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { beginAt, goTo, openConsole, SOON, signIn, signOut, useConsole } from '../support/console/console-page.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { takePicture } from '../support/harness/browser.ts';
import { describeReal } from '../support/services/real.ts';

const MARK = '\ufeff';
const HEADER = 'wallet_address,email,name\r\n';
const BLANK_WALLET = ' ,blank@x.y,"Ann, B."\r\n';
const TOO_MANY = '"0xa3","c@x.y","x","y"\r\n';
const STRAY = '0xa4,d@x.y,Da"na\n';
const NOBODY = '0xa6,,Nobody\r\n';
/** Good rows around the bad ones, one over two lines, an empty line, and one row that is skipped. */
const FILE = [
  MARK,
  HEADER,
  '0xa1,a@x.y,"Two\r\nlines"\r\n\r\n',
  BLANK_WALLET,
  '0xa5,e@x.y,Zoë\n',
  TOO_MANY,
  NOBODY,
  STRAY,
].join('');
const LONGER = `wallet_address,email\n${Array.from({ length: 1_000 }, (_, at) => `0xb${at},b${at}@x.y\n`).join('')}`;

const p = useConsole();
/** The page of all cases. */
const open = beforeTests(() => openConsole(p));

/** Drops a file onto the page, as a person drags it there. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const transfer = await page.evaluateHandle(
    `(() => { const given = new DataTransfer(); given.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/csv' })); return given; })()`,
  );
  const target = page.getByRole('heading', { name: 'Import users', level: 1 });
  await target.dispatchEvent('dragover', { dataTransfer: transfer });
  await target.dispatchEvent('drop', { dataTransfer: transfer });
}

async function openMigrations(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Migrations' }).click();
  await page.getByRole('heading', { name: 'User migrations', level: 1 }).waitFor();
}

/** Chooses a file by the input of the page. */
async function choose(page: Page, name: string, text: string): Promise<void> {
  await page.getByLabel('CSV file of users').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });
}

const button = (page: Page, name: string) => page.getByRole('button', { name });
const cells = (page: Page, table: string) => page.getByRole('table', { name: table, exact: true });

describeReal('chromium', 'user migrations in the console', () => {
  it('a spreadsheet with bad rows is checked, corrected and imported; rows that the server rejects can be corrected too', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    await page.getByRole('link', { name: 'Import users' }).first().click();
    const [template] = await Promise.all([page.waitForEvent('download'), button(page, 'Download template').click()]);
    expect(await readFile(await template.path(), 'utf8')).toContain('wallet_address,email,external_id');
    await drop(page, 'users.csv', FILE);
    await page.getByRole('heading', { name: '4 rows to correct' }).waitFor();
    const problems = await cells(page, 'Rows to correct').innerText();
    for (const reason of [
      'No wallet address',
      '4 fields instead of 3',
      'No email and no external id',
      'A quote is not closed',
    ])
      expect(problems).toContain(reason);
    // The server decides the same without saving anything; then the rows are corrected in the browser.
    await button(page, 'Check without saving').click();
    await page.getByText('6 of 6 rows: 2 would be created 1 skipped 3 failed').waitFor();
    await page.getByText('This was a check: nothing is saved.').waitFor();
    await button(page, 'Would not be created 4').waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download these rows').click()]);
    expect(download.suggestedFilename()).toBe('users-to-correct.csv');
    const rejected = [BLANK_WALLET, TOO_MANY, NOBODY, STRAY];
    expect(await readFile(await download.path(), 'utf8')).toBe(MARK + HEADER + rejected.join(''));
    await button(page, 'Correct here').click();
    await takePicture(page, 'console-migration');
    expect(await page.getByLabel('Email of line 6').getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Name of line 6').getAttribute('aria-invalid')).toBe('false');
    // A long value stays in its card on a phone.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByLabel('Wallet address of line 3').fill(`0x${'a'.repeat(40)}`);
    const out = `(() => { const card = document.querySelector('.table:has(.cell)').getBoundingClientRect();
      return [...document.querySelectorAll('.cell > *')].filter((of) => of.getBoundingClientRect().right > card.right).map((of) => of.ariaLabel); })()`;
    expect(await page.evaluate(out)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByLabel('Wallet address of line 3').fill('0xa2');
    await page.getByLabel('Email of line 5').fill('a@x.y');
    await page.getByLabel('Email of line 6').fill('nobody@x.y');
    await page.getByLabel('Name of line 7').fill('Dana, "D"');
    await button(page, 'Apply corrections').click();
    await page.getByText('4 rows corrected.').waitFor();
    await page.getByText('Same email as line 2').waitFor();
    await button(page, 'Import without checking').click();
    await page.getByText('6 of 6 rows: 5 created 1 skipped 0 failed').waitFor();
    expect(await cells(page, 'Rows').innerText()).toContain('Email already used');
    await button(page, 'Correct here').click();
    await page.getByLabel('Email of line 5').fill('c@x.y');
    await button(page, 'Apply corrections').click();
    await page.getByText('No problems found in the file.').waitFor();
    await button(page, 'Check without saving').click();
    await page.getByText('1 would be created').waitFor();
    await button(page, 'Import 1 user').click();
    await page.getByText('1 of 1 row: 1 created 0 skipped 0 failed').waitFor();
    await page.getByText('Every row has created a user.').waitFor();
    const { rows: users } = await p.service.context.userPages.page(
      p.demo.node_id,
      { search: '@x.y' },
      { size: 9, backward: false, after: undefined, before: undefined },
    );
    expect(users.map(({ address, email, name }) => [address, email, name])).toEqual([
      ['0xa1', 'a@x.y', 'Two\r\nlines'],
      ['0xa2', 'blank@x.y', 'Ann, B.'],
      ['0xa5', 'e@x.y', 'Zo\u00eb'],
      ['0xa6', 'nobody@x.y', 'Nobody'],
      ['0xa4', 'd@x.y', 'Dana, "D"'],
      ['0xa3', 'c@x.y', 'x'],
    ]);

    // The audit tells a check from an import.
    await p.service.context.auditWriter.flush();
    await goTo(page, '#/audit?operation=startUserMigration');
    const operations = cells(page, 'Audit records').locator('tbody button.plain');
    await expect
      .poll(async () => [...new Set(await operations.allInnerTexts())].sort(), SOON)
      .toEqual(['Check a user migration', 'Start user migration']);

    // Another session knows the migration, and is given the file again.
    await signOut(page);
    await signIn(page, p.demo);
    await openMigrations(page);
    await cells(page, 'User migrations').getByText('Check only').first().waitFor();
    await cells(page, 'User migrations').getByRole('link').last().click();
    await page
      .getByLabel('choose the file again')
      .setInputFiles({ name: 'u.csv', mimeType: 'text/csv', buffer: Buffer.from(HEADER) });
    await button(page, 'Correct here').click();
    await page.getByRole('alert').getByText('This is not the file of the migration').waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('a wrong cell is seen without scrolling, and a long one is whole while it is typed in', async () => {
    const page = await beginAt(open, p.demo, '#/migrations/new');
    await page.setViewportSize({ width: 1440, height: 900 });
    const address = `0x${'c'.repeat(40)}`;
    const row = `${address},yara.nasser.of.the.north@example.com,crm-1085,Yara,Nasser,maybe`;
    await choose(page, 'six.csv', `wallet_address,email,external_id,name,surname,kyc_sent\n${row}\n`);
    const wrong = page.locator('.cell > [aria-invalid="true"]');
    await wrong.waitFor();
    const isSeen = `(() => { const card = document.querySelector('.table:has(.cell)').getBoundingClientRect();
      return document.querySelector('.cell > [aria-invalid="true"]').getBoundingClientRect().right <= card.right; })()`;
    expect(await page.evaluate(isSeen)).toBe(true);
    const long = page.getByLabel('Wallet address of line 2');
    const places = () =>
      page.locator('th, .cell').evaluateAll((all) => all.map((of) => JSON.stringify(of.getBoundingClientRect())));
    const before = await places();
    await long.focus();
    expect(await long.evaluate((of) => of.scrollWidth <= of.clientWidth)).toBe(true);
    // A click at what stood beside the field before reaches it.
    expect(await places()).toEqual(before);
    await long.fill(`${address.slice(0, -1)}d`);
    await page.getByRole('link', { name: 'Clients' }).first().click();
    const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
    await asked.getByRole('button', { name: 'Keep editing' }).click();
    expect(await long.inputValue()).toBe(`${address.slice(0, -1)}d`);
    await page.getByLabel('KYC sent of line 2').selectOption('Sent');
    // A file that cannot be read any more leaves the corrections, and what asks before they are left.
    await page.evaluate(
      'window.read = Blob.prototype.arrayBuffer; Blob.prototype.arrayBuffer = () => Promise.reject();',
    );
    await button(page, 'Apply corrections').click();
    await page.getByText('The file cannot be read').waitFor();
    await page.evaluate('Blob.prototype.arrayBuffer = window.read;');
    await page.getByRole('link', { name: 'Clients' }).first().click();
    await asked.getByRole('button', { name: 'Keep editing' }).click();
    await button(page, 'Apply corrections').click();
    await page.getByText('No problems found in the file.').waitFor();
    await page.getByRole('link', { name: 'Clients' }).first().click();
    await page.getByRole('heading', { name: 'Clients', level: 1 }).waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  it('the next action is in sight on a phone, and covers no field where a keyboard leaves little height', async () => {
    const page = await beginAt(open, p.demo, '#/migrations/new');
    const rows = Array.from({ length: 8 }, (_, at) => `0xd${at},d${at}@x.y,maybe\n`).join('');
    await choose(page, 'phone.csv', `wallet_address,email,kyc_sent\n${rows}`);
    const apply = button(page, 'Apply corrections');
    await apply.waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByLabel('Wallet address of line 3').fill('0xd9');
    const box = await apply.boundingBox();
    expect(box && box.y + box.height).toBeLessThanOrEqual(844);
    expect(await apply.isEnabled()).toBe(true);
    await page.setViewportSize({ width: 390, height: 500 });
    const field = page.getByLabel('Wallet address of line 8');
    await field.focus();
    const cover = `(() => { const { left, top, bottom } = document.activeElement.getBoundingClientRect();
      const seen = document.elementFromPoint(left + 8, (top + bottom) / 2);
      return seen === document.activeElement ? 'nothing' : (seen?.outerHTML ?? 'the end of the window').slice(0, 120); })()`;
    expect(await page.evaluate(cover)).toBe('nothing');
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await page.evaluate("document.activeElement.scrollIntoView({ block: 'end' })");
    expect(await page.evaluate(cover)).toBe('nothing');
    // What follows the corrections is in sight once there is nothing to correct.
    await page.setViewportSize({ width: 390, height: 844 });
    for (let line = 2; line <= 9; line += 1) await page.getByLabel(`Kyc sent of line ${line}`).selectOption('true');
    await apply.click();
    await page.getByText('No problems found in the file.').waitFor();
    const next = await button(page, 'Check without saving').boundingBox();
    expect(next && next.y + next.height).toBeLessThanOrEqual(844);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  it('a file that is not a CSV of users is rejected with what to change, before anything is sent', async () => {
    const page = await beginAt(open, p.demo, '#/migrations/new');
    await choose(page, 'sizes.csv', 'colour;size\nred;1\n');
    await page.getByRole('alert').getByText('Save the file with commas between the fields.').waitFor();
    expect(await button(page, 'Import without checking').isDisabled()).toBe(true);
    await button(page, 'Choose another file').click();
    await choose(page, 'sizes.csv', 'wallet_address,size\n0x1,1\n');
    await page.getByRole('alert').getByText('The column “size” is not known. Rename or delete it.').waitFor();
    await button(page, 'Choose another file').click();
    await choose(page, 'users.xlsx', 'PK\x03\x04\0');
    await page.getByRole('alert').getByText('This is not a CSV file in UTF-8').waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('the progress continues after an outage of the server, and a cancelled migration stays cancelled', async () => {
    const page = await beginAt(open, p.demo, '#/migrations');
    const list = cells(page, 'User migrations');
    const before = await list.getByRole('link').count();
    // Nobody works at it before it is cancelled.
    await p.service.context.migrationJobs.stop();
    await page.getByRole('link', { name: 'Import users' }).first().click();
    await choose(page, 'longer.csv', LONGER);
    await expect.poll(() => button(page, 'Import without checking').isEnabled(), SOON).toBe(true);
    await button(page, 'Import without checking').focus();
    await page.keyboard.press('Enter');
    await page.getByText('0 of 1,000 rows').waitFor();
    await page.route('**/graphql', (route) => route.abort('connectionreset'));
    await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
    await page.unroute('**/graphql');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await button(page, 'Cancel migration').click();
    const dialog = page.getByRole('dialog', { name: 'Cancel this migration?' });
    await dialog.getByText('Users already created are kept').waitFor();
    await dialog.getByRole('button', { name: 'Cancel migration' }).click();
    p.service.context.migrationJobs.start();
    await page.getByText('It was cancelled: users created so far are kept').waitFor();
    expect(await button(page, 'Cancel migration').count()).toBe(0);
    await openMigrations(page);
    await list.getByText('Cancelled').waitFor();
    expect(await list.getByRole('link').count()).toBe(before + 1);
  });

  it('D7-10: a user is found and erased on request, and the receipt confirms it', async () => {
    const call = {
      token: await p.clientToken(),
      json: { wallet_address: '0xerase', email: 'ada.erase@x.y', name: 'Ada', surname: 'Erasable' },
    };
    const { json } = await p.call('POST', '/v2/users/migrate/with-wallet', call);
    const page = await beginAt(open, p.demo, '#/users');
    await page.getByLabel('Search').fill('ADA.ERASE');
    await page.getByRole('link', { name: 'Ada Erasable' }).click();
    await button(page, 'Erase user').click();
    const dialog = page.getByRole('dialog', { name: 'Erase Ada Erasable?' });
    await dialog.getByRole('button', { name: 'Erase user' }).click();
    const receipt = page.getByRole('region', { name: 'Receipt' });
    await receipt
      .getByText(/^Erased on .*Removed from \d+ audit records?, 1 import and 0 stored responses\./)
      .waitFor();
    await page.getByRole('heading', { name: 'Erased user', level: 1 }).waitFor();
    expect(await page.locator('main').innerText()).not.toMatch(/Ada|ada\.erase/);
    expect(await button(page, 'Erase user').count()).toBe(0);
    // Whoever opens the user later sees when it was.
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Users' }).click();
    await page.getByLabel('Search').fill(json.id);
    await receipt.getByText(/^Erased on .* by admin.*Removed from \d+ audit records?/).waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), button(page, 'Save receipt').click()]);
    expect(file.suggestedFilename()).toBe(`erasure-${json.id}.json`);
    expect(JSON.parse(await readFile(await file.path(), 'utf8'))).toMatchObject({
      ...{ user: json.id, erased_by_name: 'admin', stored_responses: 0, audit_records: expect.any(Number) },
      ...{ migrations: [expect.any(String)], seal: { body: expect.stringContaining(json.id) } },
    });
    await receipt.getByRole('link', { name: 'Export its record' }).click();
    await page.getByRole('dialog', { name: 'Export audit records' }).getByText('eraseUser').first().waitFor();
    expect(open.complaints).toEqual([]);
  });
});
