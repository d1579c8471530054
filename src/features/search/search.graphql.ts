import { type Builder, enumOf, implement } from '../../api/graphql/kit/builder.ts';
import { searchInput, wholeNumberInput } from '../../lib/input.ts';
import type { SearchHit } from './search.service.ts';

/** Adds the search over all kinds of things. */
export function addSearch(builder: Builder): void {
  const kind = enumOf<SearchHit['kind']>(builder, 'SearchKind', 'A kind of what a search finds.', {
    transaction: 'A transaction: by its id or hash, or their beginning. Needs transactions:read.',
    user: 'A user: by the id or its beginning, or as `users` searches. Needs users:read.',
    account: 'An account: by its id or its beginning, or part of the name. Needs accounts:read.',
    wallet: 'A wallet: by its id or its beginning. Needs wallets:read.',
    rule: 'A rule of a wallet: by its id or its beginning, or part of the name. Needs wallet-rules:read.',
    asset: 'An asset: by its id or its beginning, or part of the name, symbol or contract address. Needs tokens:read.',
    migration: 'A user migration: by its id or its beginning. Needs users:read.',
    client: 'A client: by its id or its beginning, or part of the name. Needs clients:manage.',
    supervisor: 'A supervisor: by the id or its beginning, or part of the username. Needs clients:manage.',
    request: 'A request of the last seven days: by its exact correlation id. Needs audit:read.',
  });
  const hit = implement(builder.objectRef<SearchHit>('SearchHit'), 'Something that a search found.', {
    kind: [kind, 'Its kind.'],
    id: ['ID', 'Its id; of a request, its correlation id.'],
    title: ['String', 'What it is called.'],
    within: ['ID?', 'The id of what it belongs to: of a rule its wallet; otherwise null.'],
  });
  builder.queryField('search', (t) =>
    t.field({
      type: [hit],
      description:
        'Finds things by a text: an id, hash or correlation id, the beginning of an id of four characters or more, or part of a name. Each kind only with its permission. Needs any token.',
      authScopes: { token: true },
      args: {
        search: t.arg.string({ required: true, description: 'The text.', validate: { schema: searchInput() } }),
        first: t.arg.int({
          defaultValue: 10,
          description: 'The greatest number of things of each kind: 1 to 20.',
          validate: { schema: wholeNumberInput(1, 20) },
        }),
      },
      resolve: (_root, { search, first }, { services, principal }) =>
        services.search.find(principal.nodeId, principal.permissions, search, first ?? 10),
    }),
  );
}
