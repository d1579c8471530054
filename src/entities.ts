import type { InferKyselyDB } from '@mikro-orm/sql';
import { Account } from './accounts/account.entity.ts';
import { AccountBlock, AccountChange, AccountSuperblock } from './accounts/account-counts.entity.ts';
import { Asset } from './assets/asset.entity.ts';
import { AuditRecord } from './audit/audit-record.entity.ts';
import { Client, ClientQuota, ClientSecret } from './clients/client.entity.ts';
import { BusMessage, BusOffset } from './events/bus.entity.ts';
import { IdempotentAnswer } from './idempotency/idempotent-answer.entity.ts';
import { AccessChange, RevokedToken, SpentRefreshToken } from './oauth/revocation.entity.ts';
import { Session } from './oauth/session.entity.ts';
import { OutboxEvent } from './outbox/outbox.entity.ts';
import { Chain, Network, NetworkCurrency, Node } from './reference/reference.entity.ts';
import { ReferenceParked, ReferenceTombstone } from './reference/reference-state.entity.ts';
import { LoginFailure, Supervisor } from './supervisors/supervisor.entity.ts';
import {
  NodeEventSeq,
  ParkedNotification,
  Transaction,
  TransactionEvent,
  TransactionId,
  TransactionLookup,
} from './transactions/transaction.entity.ts';
import { Migration, MigrationFile, MigrationJob, MigrationRow } from './user-migrations/migration.entity.ts';
import { User } from './users/user.entity.ts';
import { WalletRule } from './wallet-rules/wallet-rule.entity.ts';
import { Wallet, WalletNetwork } from './wallets/wallet.entity.ts';

/** Every table of the database. */
export const entities = [
  AccessChange,
  Account,
  AccountBlock,
  AccountChange,
  AccountSuperblock,
  Asset,
  AuditRecord,
  BusMessage,
  BusOffset,
  Chain,
  Client,
  ClientQuota,
  ClientSecret,
  IdempotentAnswer,
  LoginFailure,
  Migration,
  MigrationFile,
  MigrationJob,
  MigrationRow,
  Network,
  NetworkCurrency,
  Node,
  NodeEventSeq,
  OutboxEvent,
  ParkedNotification,
  ReferenceParked,
  ReferenceTombstone,
  RevokedToken,
  Session,
  SpentRefreshToken,
  Supervisor,
  Transaction,
  TransactionEvent,
  TransactionId,
  TransactionLookup,
  User,
  Wallet,
  WalletNetwork,
  WalletRule,
];

/** The tables as Kysely sees them: column names and the plain values that rows are read and written in. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;
