import type { Page } from 'playwright-core';
import type { Demo } from '../../src/app/demo/demo.ts';

/** Signs in by the demo's supervisor. */
export async function signIn(page: Page, { client, supervisor }: Demo): Promise<void> {
  await page.getByLabel('Client id', { exact: true }).fill(client.client_id);
  await page.getByLabel('Client secret').fill(client.client_secret);
  await page.getByLabel('Username').fill(supervisor.username);
  await page.getByLabel('Password').fill(supervisor.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}
