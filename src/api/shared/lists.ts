import type { Domain } from '../../domain/domain.ts';
import { isUuid } from '../../lib/input.ts';
import { type NestedList, ofOneOwner, type PagedList } from '../../platform/database/keyset-list.ts';
import { notFound } from '../../platform/errors.ts';

/** Returns the rules of a wallet, whose id is the filter; a wallet that does not exist is refused as `not_found`. */
export function rulesOfWallet({ walletRulePages, walletPages }: Domain) {
  return ofKnownOwner(walletRulePages.ofWallets, (nodeId, id) => walletPages.find(nodeId, id));
}

/** Returns the versions of a rule, which may be deleted; a rule that never existed is refused as `not_found`. */
export function versionsOfRule({ walletRulePages: { versions } }: Domain) {
  return ofKnownOwner(versions, async (nodeId, id) =>
    isUuid(id) ? (await versions.counts(nodeId, [id])).get(id) : undefined,
  );
}

/**
 * Returns the list of a single owner, whose id in lower case is the filter; an owner that `find` does not know is
 * refused.
 */
function ofKnownOwner<Row>(
  lists: NestedList<Row>,
  find: (nodeId: string, id: string) => Promise<unknown>,
): PagedList<Row, string> {
  const list = ofOneOwner(lists);
  return {
    ...list,
    page: async (nodeId, id, request) => {
      if ((await find(nodeId, id)) === undefined) throw notFound();
      return list.page(nodeId, id, request);
    },
  };
}
