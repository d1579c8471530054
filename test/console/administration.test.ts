import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { ClientDocument } from '../graphql/generated/graphql.ts';
import { beginAt, openConsole, SOON, shown, signIn, tryToSignIn, useConsole } from '../support/console/console-page.ts';
import {
  createdClient,
  createdSupervisor,
  grantStatus,
  login,
  operate,
  PASSWORD,
} from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { takePicture } from '../support/harness/browser.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const p = useConsole();
const open = beforeTests(() => openConsole(p));

/** Whether a toast is shown, and lies over no part of an open sheet, of the bar of a phone, or of a bar of buttons. */
const TOAST_IS_FREE = `(() => { const toast = document.querySelector('.toasts').getBoundingClientRect();
  return toast.height > 0 && [...document.querySelectorAll('dialog[open], .bar, h1')].every((of) => {
    const { top, bottom } = of.getBoundingClientRect(); return bottom <= toast.top + 1 || top >= toast.bottom; }); })()`;

/** Whether the head of an open sheet covers nothing of what is in it. */
const HEAD_IS_FREE = `(() => { const sheet = document.querySelector('dialog.sheet');
  return sheet.querySelector('dt').getBoundingClientRect().top >= sheet.querySelector('.head').getBoundingClientRect().bottom; })()`;

describeReal('chromium', 'administration in the console', () => {
  it('creates a client, shows its secret once, and rotates it with an hour of overlap', async () => {
    const page = await beginAt(open, p.demo, '#/clients');
    await page.getByRole('button', { name: 'New client' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name').fill('Acme ERP');
    await sheet.getByLabel('accounts:read').check();
    await sheet.getByText('Tokens, addresses and limits').click();
    await sheet.getByLabel('Requests per minute').fill('600');
    await sheet.getByLabel('Addresses that it may call from').fill('127.0.0.1 home');
    await sheet.getByRole('button', { name: 'Create the client' }).click();
    await sheet.getByText('must be an IP address or a network').first().waitFor();
    await sheet.getByLabel('Addresses that it may call from').fill('127.0.0.1, ::1');
    await sheet.getByRole('button', { name: 'Create the client' }).click();
    const secretOf = async () => {
      const dialog = page.getByRole('dialog', { name: 'The secret of Acme ERP', exact: true });
      await dialog.waitFor();
      const [client_id = '', client_secret = ''] = await dialog.locator('dd code').allInnerTexts();
      // A browser lets a page refuse the first of two in a row only.
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      await dialog.getByRole('button', { name: 'I have stored it' }).click();
      await dialog.waitFor({ state: 'detached' });
      return { grant_type: 'client_credentials', client_id, client_secret };
    };
    const first = await secretOf();
    expect(await page.content()).not.toContain(first.client_secret);
    expect(await grantStatus(p, first)).toBe(200);
    const { client } = await operate(p, await p.clientToken(), ClientDocument, { id: first.client_id });
    expect(client).toMatchObject({
      name: 'Acme ERP',
      scopes: ['accounts:read'],
      rateLimit: { requestsPerMinute: 600 },
    });
    await page.getByRole('button', { name: 'Acme ERP', exact: true }).click();
    await sheet.getByRole('button', { name: 'Rotate the secret' }).click();
    const confirm = page.getByRole('dialog', { name: 'Rotate the secret of Acme ERP?' });
    await confirm.getByLabel('The current secret stops working').selectOption('In 1 hour');
    await confirm.getByRole('button', { name: 'Rotate the secret' }).click();
    const second = await secretOf();
    expect([await grantStatus(p, first), await grantStatus(p, second)]).toEqual([200, 200]);
    await page.getByRole('button', { name: 'Acme ERP', exact: true }).click();
    await sheet.getByText('The old secret works until').waitFor();
    const activity = sheet.getByRole('table', { name: 'Activity' });
    await activity.getByRole('row').filter({ hasText: 'A new secret was made.' }).first().getByText('admin').waitFor();
    await takePicture(page, 'console-client', 900);
    await sheet.getByRole('button', { name: 'Disable the client' }).click();
    await page
      .getByRole('dialog', { name: 'Disable Acme ERP?' })
      .getByRole('button', { name: 'Disable the client' })
      .click();
    await sheet.getByRole('button', { name: 'Enable the client' }).waitFor();
    expect(await grantStatus(p, second)).toBe(401);
  });

  it('changes a client and keeps its other settings', async () => {
    const more = { allowedIps: ['192.0.2.0/24'], tokenExpiry: { enabled: true, duration: 60 }, monthlyLimit: 5 };
    const made = await createdClient(p, await p.clientToken(), { name: 'Books', scopes: ['tokens:read'], ...more });
    const page = await beginAt(open, p.demo, '#/clients');
    await page.getByRole('button', { name: 'Books', exact: true }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name').fill('Books 2');
    await sheet.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Books 2 saved.').waitFor();
    const { client } = await operate(p, await p.clientToken(), ClientDocument, { id: made.credentials.client_id });
    const { name: _name, updatedAt: _at, ...before } = made.client;
    expect(client).toMatchObject({ ...before, name: 'Books 2' });
  });

  it('creates a console client, whose link opens a sign-in', async () => {
    const page = await beginAt(open, p.demo, '#/clients');
    await page.getByRole('button', { name: 'New client' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Name').fill('Desk');
    await sheet.getByLabel('For', { exact: true }).selectOption('People at the console, without a secret');
    await sheet.getByRole('button', { name: 'Create the client' }).click();
    await sheet.getByRole('button', { name: 'Copy the link' }).waitFor();
    const console_client_id = (await sheet.locator('.id').first().getAttribute('title')) ?? '';
    await using own = await openConsole(p);
    await signIn(own.page, { ...p.demo, console_client_id });
  });

  it('creates a supervisor, unlocks them, changes the role and the password, and disables them', async () => {
    const page = await beginAt(open, p.demo, '#/supervisors');
    const username = `grace-${randomUUID().slice(0, 8)}`;
    await page.getByRole('button', { name: 'New supervisor' }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByLabel('Username').fill(username);
    expect(await sheet.getByLabel('Username').getAttribute('autocapitalize')).toBe('none');
    await sheet.getByLabel('First password').fill('short');
    await sheet.getByRole('button', { name: 'Create the supervisor' }).click();
    await sheet.getByText('First password must have 8 to 1024 characters', { exact: false }).waitFor();
    await sheet.getByLabel('First password').fill(PASSWORD);
    await sheet.getByRole('button', { name: 'Create the supervisor' }).click();
    await page.getByText(`${username} created.`).waitFor();
    for (let time = 0; time < 5; time++) await login(p, username, { password: 'wrong' }).catch(() => undefined);
    await beginAt(open, p.demo, '#/supervisors');
    const opener = page.getByRole('button', { name: username, exact: true });
    await page.getByRole('row').filter({ has: opener }).getByText('Locked').waitFor();
    await opener.click();
    await sheet.locator('dt').first().waitFor();
    expect(await page.evaluate(HEAD_IS_FREE)).toBe(true);
    await sheet.getByText(/^Locked until .+ after wrong passwords\./).waitFor();
    await sheet.getByRole('button', { name: 'Unlock' }).click();
    await page.getByText(`${username} is unlocked.`).waitFor();
    await expect.poll(() => page.evaluate(TOAST_IS_FREE), SOON).toBe(true);
    await sheet.getByRole('button', { name: 'Copy link' }).click();
    await sheet.getByText('Copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(page.url());
    const records = sheet.getByRole('link', { name: /^5 wrong passwords since .+ from 127\.0\.0\.1$/ });
    await expect.poll(() => records.count(), SOON).toBe(1);
    await sheet.getByText(/^Not locked any more\. The last lock would have lasted until .+/).waitFor();
    await sheet.getByRole('table', { name: 'Activity' }).getByText('The username was unlocked.').waitFor();
    await login(p, username);
    await sheet.getByLabel('Role').selectOption('admin');
    await sheet.getByRole('button', { name: 'Change the role' }).click();
    const asked = page.getByRole('dialog', { name: `Make ${username} an admin?` });
    await asked.getByRole('button', { name: 'Change the role' }).click();
    await page.getByText(`The role of ${username} is now admin.`).waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => page.evaluate(TOAST_IS_FREE), SOON).toBe(true);
    await page.setViewportSize({ width: 1280, height: 800 });
    const changed = sheet
      .getByRole('table', { name: 'Activity' })
      .getByRole('row')
      .filter({ hasText: /Role: operator → admin/ });
    await changed.getByText('admin', { exact: true }).first().waitFor();
    expect(await changed.getByRole('link').last().getAttribute('href')).toMatch(/^#\/audit\?correlationId=/);
    await sheet.getByLabel('New password').fill(`${PASSWORD} 2`);
    await sheet.getByRole('button', { name: 'Set the password' }).click();
    await page.getByText(`The password of ${username} is set.`).waitFor();
    await login(p, username, { password: `${PASSWORD} 2` });
    await sheet.getByRole('button', { name: 'Disable the supervisor' }).click();
    const confirm = page.getByRole('dialog', { name: `Disable ${username}?` });
    await confirm.getByRole('button', { name: 'Disable the supervisor' }).click();
    await page.getByText(`${username} is disabled.`).waitFor();
    await expect(login(p, username, { password: `${PASSWORD} 2` })).rejects.toThrow('401');
  });

  it('shows names of clients and supervisors as text, whatever they contain', async () => {
    const token = await p.clientToken();
    const names = ['<img src=x onerror="window.pwned=1">', '"><script>window.pwned=1</script>', '{constructor}'];
    for (const name of names) {
      await createdClient(p, token, { name });
      await createdSupervisor(p, token, { username: name });
    }
    for (const [turn, place] of ['#/clients', '#/supervisors'].entries()) {
      const page = await beginAt(open, p.demo, place);
      for (const name of inTurn(names, 3, turn)) {
        await page.getByRole('button', { name, exact: true }).click();
        await page.getByRole('dialog').getByRole('heading', { name, exact: true }).waitFor();
        await page
          .getByRole('dialog')
          .getByRole('button', { name: /^(?:Disable|End) the (?:client|sessions)/ })
          .click();
        const asked = page.getByRole('dialog').last();
        await expect.poll(() => asked.getByRole('button', { name: 'Cancel' }).count(), SOON).toBe(1);
        expect(await asked.innerText()).toContain(name);
        await asked.getByRole('button', { name: 'Cancel' }).click();
        await page.getByRole('button', { name: 'Close' }).click();
      }
      expect(await page.evaluate('typeof window.pwned')).toBe('undefined');
      expect(open.complaints).toEqual([]);
    }
  });

  it('D3-40: lets people change their own password, stay signed in, and end all their sessions', async () => {
    const username = `ada-${randomUUID().slice(0, 8)}`;
    await createdSupervisor(p, await p.clientToken(), { username });
    const { client, console_client_id } = p.demo;
    const credentials = (password: string) => ({ client, console_client_id, supervisor: { username, password } });
    await using own = await openConsole(p);
    const { page } = own;
    await signIn(page, credentials(PASSWORD));
    await page.evaluate("location.hash = '#/profile'");
    const fill = async (current: string, next: string) => {
      await page.getByLabel('Current password').fill(current);
      await page.getByLabel('New password', { exact: true }).fill(next);
      await page.getByLabel('New password again').fill(next);
      await page.getByRole('button', { name: 'Change the password' }).click();
    };
    await fill('wrong', `${PASSWORD} 2`);
    await page.getByText('Current password is wrong.', { exact: true }).waitFor();
    expect(await shown(page)).not.toMatch(/`|the input is not valid|was wrong too often/);
    await fill(PASSWORD, `${PASSWORD} 2`);
    await page.getByText('Password changed.').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'My password and sessions' }).waitFor();
    await page.getByRole('button', { name: 'End all my sessions' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End all my sessions' }).click();
    await expect.poll(() => shown(page), SOON).toContain('All your sessions have ended.');
    const about = { tenant_name: 'Demo', login_lock: { failures: 7, seconds: 600 } };
    await page.route('**/console/tenants/*', (route) => route.fulfill({ json: about }));
    await tryToSignIn(page, credentials(PASSWORD));
    const said =
      'The username or the password is wrong. After 7 attempts, wait 10 minutes or ask an administrator to unlock you.';
    await page.getByText(said).waitFor();
    await signIn(page, credentials(`${PASSWORD} 2`));
  });
});
