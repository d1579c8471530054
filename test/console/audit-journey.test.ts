import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { beginAt, goTo, openConsole, SOON, useConsole } from '../support/console/console-page.ts';
import { createdSupervisor } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { takePicture } from '../support/harness/browser.ts';
import { describeReal } from '../support/services/real.ts';
import { limit } from '../support/wallet-rules/rules.ts';

const p = useConsole();
const open = beforeTests(() => openConsole(p));

const openAudit = (page: Page) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Audit' }).click();

describeReal('chromium', 'audit records in the console', () => {
  it('an error message links to its audit record', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'User migrations' }).click();
    await page.getByRole('link', { name: 'Import users' }).first().click();
    const bad = {
      name: 'bad.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('wallet_address,email,email\n0x1,a@x.y,b@x.y\n'),
    };
    await page.getByLabel('CSV file of users').setInputFiles(bad);
    await page.getByRole('button', { name: 'Import without checking' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Show its audit record' }).click();
    const response = page.getByRole('region', { name: 'Response body' });
    await response.waitFor();
    expect(await response.innerText()).toMatch(/\n {2}"data": \{\n {4}"result": \{/);
    expect(await page.getByText('POST /graphql').count()).toBe(1);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(new URL(page.url()).hash).toContain(copied);
    expect(open.complaints).toEqual([]);
  });

  it('secrets of a request and its response are masked everywhere', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    const password = 'correct-horse-battery';
    const query = `mutation ($client: ClientInput!, $supervisor: SupervisorInput!) {
      createClient(input: $client) { ... on CreatedClient { clientSecret } }
      createSupervisor(input: $supervisor) { ... on Supervisor { username } }
    }`;
    const client = { name: 'masked', grantTypes: ['CLIENT_CREDENTIALS'], scopes: ['users:read'] };
    const supervisor = { username: 'masked', password, role: 'viewer' };
    const answer = await p.call('POST', '/graphql', {
      json: { query, variables: { client, supervisor } },
      token: await p.clientToken(),
      headers: { 'x-correlation-id': 'carries-secrets' },
    });
    const { createClient, createSupervisor } = answer.json.data;
    expect(createSupervisor).toEqual({ username: expect.any(String) });
    await goTo(page, '#/audit?correlationId=carries-secrets');
    const body = async (title: string) => JSON.parse(await page.getByRole('region', { name: title }).innerText());
    expect((await body('Request body')).variables.supervisor).toMatchObject({ password: '***', role: 'viewer' });
    await takePicture(page, 'console-audit', 1500);
    expect((await body('Response body')).data.createClient).toEqual({ clientSecret: '***' });
    const text = await page.getByRole('main').innerText();
    expect(createClient.clientSecret).toMatch(/.{16}/);
    for (const secret of [password, createClient.clientSecret]) expect(text).not.toContain(secret);
  });

  it('a body is indented with all digits of its numbers, and unchanged if it is nested too deeply to indent', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    const authorization = `Bearer ${await p.clientToken()}`;
    const bodyOf = async (correlationId: string, body: string) => {
      const headers = { 'x-correlation-id': correlationId, 'content-type': 'application/json', authorization };
      await fetch(`${p.url}/v1/wallets/${randomUUID()}/rules`, { method: 'POST', headers, body });
      await goTo(page, `#/audit?correlationId=${correlationId}`);
      return page.getByRole('region', { name: 'Request body' }).innerText();
    };
    expect(await bodyOf('has-digits', '{"a":12345678901234567890.10,"b":[1e400,{}]}')).toContain(
      '\n  "a": 12345678901234567890.10,\n  "b": [\n    1e400,\n    {}\n',
    );
    // Its indents would be 30 MB.
    const deep = `${'['.repeat(500)}${'1,'.repeat(30_000)}1${']'.repeat(500)}`;
    expect(await bodyOf('is-deep', `{"a":${deep}}`)).toContain(deep);
  });

  it('a search by who, what and where is kept in the URL, and a row opens with the keyboard', async () => {
    const page = await beginAt(open, p.demo, '#/transactions');
    const { supervisor, client, wallet_id: wallet } = p.demo;
    const rule = randomUUID();
    const grant = { grant_type: 'password', ...client, ...supervisor };
    const { json: login } = await p.call('POST', '/v2/oauth/token', { json: grant });
    const token = login.access_token;
    const query = 'mutation ($id: ID!) { setWalletRuleStatus(id: $id, status: DISABLED) { __typename } }';
    await p.call('POST', '/graphql', { token, json: { query, variables: { id: rule } } });
    await p.call('POST', `/v1/wallets/${wallet}/rules`, { token: await p.clientToken(), json: {} });
    await p.service.context.auditWriter.flush();
    await openAudit(page);
    const table = page.getByRole('table', { name: 'Audit records' });
    const changed = table.getByRole('row').filter({ hasText: 'Set wallet rule status' });
    await changed.getByText(supervisor.username, { exact: true }).waitFor();
    await changed.getByText('Demo client').waitFor();
    await changed.locator(`.id[title="${rule}"]`).waitFor();
    expect(await table.getByText('Audit records').count()).toBe(0);
    await page.getByLabel('Hide my own reads').uncheck();
    await table.getByText('Audit records').first().waitFor();
    await page.getByLabel('Who').selectOption({ label: supervisor.username });
    await page.getByRole('button', { name: '1 h', exact: true }).click();
    await expect.poll(() => page.url(), SOON).toContain('range=60');
    await page.getByLabel('Id, path or operation').fill('setWalletRuleStatus');
    await page.keyboard.press('Enter');
    await expect.poll(() => table.getByRole('row').count(), SOON).toBe(2);
    for (const given of ['operation=setWalletRuleStatus', 'range=60', 'subject=', 'own=shown'])
      expect(page.url()).toContain(given);
    await changed.getByRole('button', { name: 'Set wallet rule status' }).focus();
    await page.keyboard.press('Enter');
    const sheet = page.getByRole('dialog', { name: 'Set wallet rule status' });
    await sheet.getByText('Login', { exact: true }).waitFor();
    await sheet.getByRole('button', { name: 'Request', exact: true }).click();
    expect(await sheet.getByRole('region', { name: 'Request body' }).innerText()).toContain(rule);
    await sheet.getByRole('button', { name: 'Response', exact: true }).click();
    expect(await sheet.getByRole('region', { name: 'Response body' }).innerText()).toContain('NotFoundError');
    await page.keyboard.press('Escape');
    await expect.poll(() => sheet.count()).toBe(0);
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByRole('button', { name: 'Rejected (4xx)' }).click();
    await page.getByLabel('Id, path or operation').fill(`/v1/wallets/${wallet}`);
    await page.keyboard.press('Enter');
    await expect.poll(() => table.getByRole('row').count(), SOON).toBe(2);
    await page.getByText('More filters').click();
    await page.getByLabel('Received before').fill('2026-01-01T00:00:00');
    await page.keyboard.press('Enter');
    await page.getByText('No request matches.').waitFor();
    const until = new URL(page.url()).hash.match(/until=([^&]*)/)?.[1] ?? '';
    expect(decodeURIComponent(until)).toBe(new Date('2026-01-01T00:00:00').toISOString());
    expect(open.complaints).toEqual([]);
  });

  it('D8-18: an export of a search is asked for, shows its progress, and is downloaded as one archive', async () => {
    const page = await beginAt(open, p.demo, '#/audit?operation=migrateUsers&changes=only&range=60');
    await page.getByRole('button', { name: 'Export', exact: true }).click();
    const sheet = page.getByRole('dialog', { name: 'Export audit records' });
    expect(await sheet.innerText()).toContain('migrateUsers');
    expect(await sheet.innerText()).toContain('Your own reads are among them');
    const since = () => sheet.locator('time').first().getAttribute('datetime');
    const sinceFirst = (await since()) ?? '';
    await sheet.getByRole('button', { name: 'Export these records' }).click();
    const made = sheet.getByRole('region', { name: /^Export [0-9a-f-]{36}$/ }).first();
    await made.getByText('Ready').waitFor();
    await made.getByText('0 of 0 records').waitFor();
    // What the panel shows is what was asked for.
    expect(await since()).toBe(sinceFirst);
    const asked = made.locator('dl time').first();
    expect(Date.parse((await asked.getAttribute('datetime')) ?? '')).toBe(Date.parse(sinceFirst));
    expect(await made.innerText()).toMatch(/Only\s+Changes/);
    expect(await made.innerText()).not.toMatch(/\b(?:true|false)\b/);
    for (let times = 0; times < 2; times += 1) {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        made.getByRole('button', { name: 'Download' }).click(),
      ]);
      expect(file.suggestedFilename()).toMatch(/^audit-export-[0-9a-f-]{36}\.zip$/);
      expect(
        readFileSync(await file.path())
          .subarray(0, 2)
          .toString(),
      ).toBe('PK');
      await expect.poll(() => made.getByRole('button', { name: 'Download' }).isEnabled(), SOON).toBe(true);
    }
    expect(page.url()).toContain('exports=shown');
    await page.keyboard.press('Escape');
    await expect.poll(() => sheet.count(), SOON).toBe(0);
    expect(open.complaints).toEqual([]);
  });

  it('a client is searched for with its requests by a wrong secret, in the last seven days, and a copied link keeps the period', async () => {
    const { client_id: clientId } = p.demo.client;
    const correlationId = randomUUID();
    await p.call('POST', '/v2/oauth/token', {
      json: { grant_type: 'client_credentials', client_id: clientId, client_secret: 'wrong' },
      headers: { 'x-correlation-id': correlationId },
    });
    await p.service.context.auditWriter.flush();
    const page = await beginAt(open, p.demo, '#/audit');
    await page.getByLabel('Client', { exact: true }).selectOption({ label: 'Demo client' });
    await page.getByRole('button', { name: 'Last 7 days' }).click();
    await page.getByRole('button', { name: 'Rejected (4xx)' }).click();
    const table = page.getByRole('table', { name: 'Audit records' });
    const rejected = table.getByRole('row').filter({ hasText: 'Get a token' }).first();
    await rejected.getByText('not signed in').waitFor();
    expect(page.url()).toContain(`clientId=${clientId}`);
    const before = Date.now() - 7 * 86_400_000;
    await page.getByRole('button', { name: 'Copy link' }).click();
    const copied = new URL(await page.evaluate<string>('navigator.clipboard.readText()'));
    const query = new URLSearchParams(copied.hash.split('?')[1]);
    expect(query.has('range')).toBe(false);
    expect(Math.abs(Date.parse(query.get('since') ?? '') - before)).toBeLessThan(600_000);
    await rejected.getByRole('button', { name: 'Get a token' }).click();
    const opened = page.getByRole('dialog', { name: 'Get a token' });
    await opened.waitFor();
    await expect.poll(() => page.url(), SOON).toContain('record=');
    const { hash } = new URL(page.url());
    const [, record = ''] = /record=([^&]*)/.exec(hash) ?? [];
    // The link of the open request leads to that request, and its period is kept too.
    await opened.getByRole('button', { name: 'Copy link' }).click();
    await opened.getByText('Copied').waitFor();
    const toRecord = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(toRecord).toMatch(/[?&]since=/);
    expect(toRecord).not.toContain('range=');
    // It is that of the list, however much later the request was opened.
    expect(new URLSearchParams(toRecord.split('?')[1]).get('since')).toBe(query.get('since'));
    await goTo(page, '#/accounts');
    await goTo(page, new URL(toRecord).hash);
    await opened.getByText('POST /v2/oauth/token').waitFor();
    await page.keyboard.press('Escape');
    await goTo(page, '#/accounts');
    // In a search that does not list it.
    await page.evaluate(`location.hash = '#/audit?path=/v1/none&record=${record}'`);
    await page.getByRole('dialog', { name: 'Get a token' }).getByText('POST /v2/oauth/token').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('No request matches.').waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('who goes to another view in the moment in which a record closes stays there', async () => {
    const page = await beginAt(open, p.demo, '#/audit');
    await page.locator('tbody button[aria-haspopup]').first().click();
    await page.getByRole('dialog').waitFor();
    // As Escape does. The browser reports with its next frame that the dialog is closed.
    const place = await page.evaluate(`new Promise((done) => {
      document.querySelector('dialog').requestClose();
      location.hash = '#/accounts';
      requestAnimationFrame(() => requestAnimationFrame(() => done(location.hash)));
    })`);
    expect(place).toBe('#/accounts');
    await page.getByRole('heading', { name: 'Accounts', level: 1 }).waitFor();
    expect(await page.locator('dialog').count()).toBe(0);
  });

  it('what a request is about has its name and its page, and so does who has made it; a client is apart from people', async () => {
    const { id, username } = await createdSupervisor(p, await p.loginToken(), { username: `eve-${randomUUID()}` });
    const query = `mutation { setSupervisorRole(id: "${id}", role: "operator") { __typename } }`;
    const asked = 'mutation ($id: ID!) { setSupervisorRole(id: $id, role: "viewer") { __typename } }';
    const headers = { 'x-correlation-id': `role-${randomUUID()}` };
    const token = await p.loginToken();
    await p.call('POST', '/graphql', { token, json: { query } });
    await p.call('POST', '/graphql', { token, json: { query: asked, variables: { id } }, headers });
    await p.service.context.auditWriter.flush();
    const page = await beginAt(open, p.demo, '#/audit?operation=setSupervisorRole');
    const table = page.getByRole('table', { name: 'Audit records' });
    const link = table.getByRole('link', { name: username, exact: true });
    await expect.poll(() => link.count(), SOON).toBe(1);
    expect(await link.getAttribute('href')).toBe(`#/supervisors/${id}`);
    const optionsOf = (label: string) => page.getByLabel(label, { exact: true }).locator('option').allInnerTexts();
    const apart = async () => {
      const [who, clients] = [await optionsOf('Who'), await optionsOf('Client')];
      return [who, clients].map((given) => [username, 'Demo client'].map((name) => given.includes(name)));
    };
    await expect.poll(apart, SOON).toEqual([
      [true, false],
      [false, true],
    ]);
    await goTo(page, `#/audit?correlationId=${headers['x-correlation-id']}`);
    const admin = page.getByRole('main').getByRole('link', { name: p.demo.supervisor.username, exact: true });
    await expect.poll(() => admin.getAttribute('href'), SOON).toMatch(/^#\/supervisors\//);
    const through = page.getByRole('main').getByRole('link', { name: 'Demo client', exact: true });
    expect(await through.getAttribute('href')).toBe(`#/clients/${p.demo.client.client_id}`);
  });

  it('changes alone are listed, without what anybody read', async () => {
    const page = await beginAt(open, p.demo, '#/audit?own=shown');
    await page.getByText('Audit records', { exact: true }).last().waitFor();
    await page.getByLabel('Changes only').check();
    await expect.poll(() => page.url(), SOON).toContain('changes=only');
    const operations = page.getByRole('table', { name: 'Audit records' }).locator('tbody .plain');
    const listed = async () => [
      await operations.filter({ hasText: 'Audit records' }).count(),
      (await operations.count()) > 0,
    ];
    await expect.poll(listed, SOON).toEqual([0, true]);
  });

  it('the requests that changed a rule are exported from its history', async () => {
    const page = await beginAt(open, p.demo, '#/rules');
    const { wallet_id: wallet } = p.demo;
    const token = await p.clientToken();
    const headers = { 'x-correlation-id': `rule-${randomUUID()}` };
    const rule = await p.call('POST', `/v1/wallets/${wallet}/rules`, { token, json: limit(), headers });
    const id = rule.headers.get('location')?.split('/').at(-1) ?? '';
    await p.service.context.auditWriter.flush();
    await goTo(page, `#/wallets/${wallet}/rules/${id}?history=shown`);
    await page.getByRole('link', { name: 'Export the requests of these versions' }).click();
    await page.getByRole('dialog', { name: 'Export audit records' }).getByText(headers['x-correlation-id']).waitFor();
    await page.keyboard.press('Escape');
    const table = page.getByRole('table', { name: 'Audit records' });
    await expect.poll(() => table.getByRole('row').count(), SOON).toBe(2);
  });

  it('a record that is not stored yet is looked up again', async () => {
    const page = await beginAt(open, p.demo, '#/audit');
    const json = { query: '{ me { nodeId } }' };
    await page.getByLabel('Id, path or operation').fill('comes-later');
    await page.keyboard.press('Enter');
    await page.getByText('A new record takes a few seconds to arrive').waitFor();
    await p.call('POST', '/graphql', {
      json,
      token: await p.clientToken(),
      headers: { 'x-correlation-id': 'comes-later' },
    });
    await page.getByText('POST /graphql').waitFor();
  });
});
