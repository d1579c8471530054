import { expect, it } from 'vitest';
import { accountOf, openConsole, signIn } from '../support/console/console-page.ts';
import { startStrippingProxy } from '../support/gateway/stripping-proxy.ts';
import { openPage } from '../support/harness/browser.ts';
import { startPortcullis } from '../support/harness.ts';

it('D1-15: the console, GraphiQL and Swagger UI work below a path, in a browser', async () => {
  await using proxy = await startStrippingProxy('/custody');
  await using p = await startPortcullis({ env: { PUBLIC_URL: `${proxy.origin}/custody`, CONSOLE: 'on' } });
  proxy.lead(p.url);
  for (const path of ['/custody/console', '/custody/graphql', '/custody/swagger']) {
    await using open = await openPage(proxy.origin, path);
    await open.page.waitForLoadState('networkidle');
    const asked = open.requests.filter(({ protocol }) => protocol === 'http:').map(({ pathname }) => pathname);
    expect(asked.filter((name) => !name.startsWith('/custody/'))).toEqual([]);
    expect(open.complaints).toEqual([]);
  }
  await using open = await openConsole({ url: `${proxy.origin}/custody` });
  await signIn(open.page, p.demo);
  await open.page.reload();
  await accountOf(open.page).waitFor();
  expect(proxy.asked.filter((name) => !name.startsWith('/custody/'))).toEqual([]);
  expect(proxy.asked).toContain('/custody/console/session');
});
