import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const version: string = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;

/** What the server says of itself. */
export const SERVER = { name: 'portcullis', title: 'Portcullis', version };

/** What a model is told before it chooses a tool. */
export const INSTRUCTIONS = `Portcullis is the gateway of a custody and tokenization platform. All that you see belongs to one tenant, the node of the client whose secret you were given; get_access says which node it is and what the client may do.

An account has wallets; a wallet is on one chain, may operate on networks of that chain, and has rules; a rule moves funds by itself (auto_transfer) or limits transfers (permissionless_transfer_limit). Transactions are what the chain processor reports. Users come in by migration.

- Ids are UUIDs, those of transactions apart, which are any text. Take them from the lists; never make one up.
- Amounts are exact decimals in units of the currency, given as text ("12.50"); write them as text too, so that no digit is lost. Gas fees are in wei.
- Times are ISO 8601 in UTC.
- Lists are oldest first, migrations newest first. They come in pages: where next_cursor is not null, call again with it as cursor and the other arguments unchanged.
- A failed call says in its text what to change. not_found: the id names nothing of this node. forbidden: the client lacks a scope, and repeating does not help.
- Before you create or replace a rule, show what preview_wallet_rule says of it. Tools that write change the node at once; ask first where whoever you work for has not asked for that very change.`;
