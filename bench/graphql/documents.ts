/** How many accounts are asked for, and how many wallets of each at most. */
export const PAGE = { accounts: 50, wallets: 20 } as const;

/** What is measured. */
export const DOCUMENT = `query Accounts {
  accounts(first: ${PAGE.accounts}) {
    edges { node { id name status wallets(first: ${PAGE.wallets}) { edges { node { id chain } } } } }
  }
}`;

/** The part of the product's schema that the document needs, for those that have a schema by hand. */
export const TYPE_DEFS = `
  type Query { accounts(first: Int!): AccountConnection! }
  type AccountConnection { edges: [AccountEdge!]! }
  type AccountEdge { node: Account! }
  type Account { id: ID!, name: String!, status: Int!, wallets(first: Int!): WalletConnection! }
  type WalletConnection { edges: [WalletEdge!]! }
  type WalletEdge { node: Wallet! }
  type Wallet { id: ID!, chain: String! }
`;

/** The same in PostGraphile's words: its names for the tables, and the conditions that the product has by itself. */
export function postgraphileDocument(nodeId: string): string {
  return `query Accounts {
  accounts: allAccounts(
    first: ${PAGE.accounts}, condition: {nodeId: "${nodeId}", deletedAt: null}, orderBy: [CREATED_AT_ASC, ROW_ID_ASC]
  ) {
    edges { node {
      id: rowId name status
      wallets: walletsByNodeIdAndAccountId(first: ${PAGE.wallets}, orderBy: [CREATED_AT_ASC, ROW_ID_ASC]) {
        edges { node { id: rowId chain: chainByChainId { name } } }
      }
    } }
  }
}`;
}

/** A row of either list inside of its edge. */
export function edgesOf<Node>(nodes: readonly Node[]): { edges: { node: Node }[] } {
  return { edges: nodes.map((node) => ({ node })) };
}
