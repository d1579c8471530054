import { AccountsApi, Configuration, TokensApi, UsersApi, WalletsApi } from './index';

const { BASE_URL, CLIENT_ID, CLIENT_SECRET, WALLET, TARGET_WALLET, NETWORK, CURRENCY, ADDRESS, EMAIL } =
  process.env as Record<string, string>;

/** Calls the service with the client that openapi-generator makes, and prints what it was given. */
async function main(): Promise<void> {
  const tokens = new TokensApi(new Configuration({ basePath: BASE_URL }));
  const token = await tokens.issueToken({
    tokenRequest: { grantType: 'client_credentials', clientId: CLIENT_ID, clientSecret: CLIENT_SECRET },
  });
  // What the generator sends for OAuth 2.0 is the whole header; for a bearer scheme it adds the scheme.
  const accessToken = (scheme = '') => (scheme === 'oauth2' ? `Bearer ${token.accessToken}` : token.accessToken);
  const configuration = new Configuration({ basePath: BASE_URL, accessToken });

  const page = await new AccountsApi(configuration).listAccounts({ page: 1, limit: 2 });
  const condition = { field: 'target.balance', op: 'lt', networkCurrencyId: CURRENCY } as const;
  const created = await new WalletsApi(configuration).createWalletRuleRaw({
    walletId: WALLET,
    walletRule: {
      name: 'Made in TypeScript',
      type: 'auto_transfer',
      networkId: NETWORK,
      networkCurrencyId: CURRENCY,
      autoTransferRule: {
        type: 'auto',
        amount: 250.5,
        targetWalletId: TARGET_WALLET,
        ruleLogic: { and: [{ ...condition, value: 100 }, { not: { ...condition, value: 0 } }] },
      },
    },
  });
  const user = await new UsersApi(configuration).migrateUser({ migrateUser: { walletAddress: ADDRESS, email: EMAIL } });

  process.stdout.write(
    JSON.stringify({
      scope: token.scope,
      total: page.total,
      accounts: page.data.length,
      location: created.raw.headers.get('location'),
      email: user.email,
    }),
  );
}

void main();
