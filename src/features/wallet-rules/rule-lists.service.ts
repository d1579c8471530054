import { isUuid } from '../../lib/input.ts';
import { ofOneOwner, type PagedList } from '../../platform/database/keyset-list.ts';
import { notFound } from '../../platform/errors.ts';
import type { WalletPages } from '../wallets/wallets.service.ts';
import type { WalletRulePages } from './wallet-rules.service.ts';

interface Services {
  walletRulePages: WalletRulePages;
  walletPages: WalletPages;
}

/** Returns the rules of the tenant; a wallet in the filter that does not exist is refused as `not_found`. */
export function rulesOfTenant({ walletRulePages, walletPages }: Services) {
  return ofKnownOwner(
    walletRulePages,
    async (nodeId, { walletId }) => walletId === undefined || walletPages.find(nodeId, walletId),
  );
}

/** Returns the versions of a rule, which may be deleted; a rule that never existed is refused as `not_found`. */
export function versionsOfRule({ walletRulePages: { versions } }: Pick<Services, 'walletRulePages'>) {
  return ofKnownOwner(ofOneOwner(versions), async (nodeId, id) =>
    isUuid(id) ? (await versions.counts(nodeId, [id])).get(id) : undefined,
  );
}

/** Returns a list that refuses a filter in which `find` does not know the owner of the rows. */
function ofKnownOwner<Row, Filter>(
  list: PagedList<Row, Filter>,
  find: (nodeId: string, filter: Filter) => Promise<unknown>,
): PagedList<Row, Filter> {
  return {
    count: (nodeId, filter) => list.count(nodeId, filter),
    keyOf: (row) => list.keyOf(row),
    page: async (nodeId, filter, request) => {
      if ((await find(nodeId, filter)) === undefined) throw notFound();
      return list.page(nodeId, filter, request);
    },
  };
}
