import type { InferKyselyDB } from '@mikro-orm/sql';
import {
  AccessChange,
  Client,
  ClientQuota,
  ClientSecret,
  LoginFailure,
  RevokedToken,
  Session,
  SpentRefreshToken,
  Supervisor,
} from './access.entity.ts';
import { Account, AccountBlock, AccountChange, AccountSuperblock } from './accounts.entity.ts';
import { Asset } from './assets.entity.ts';
import { AuditRecord, AuditSeal } from './audit.entity.ts';
import { BusMessage, BusOffset, OutboxEvent } from './events.entity.ts';
import { IdempotentAnswer } from './idempotency.entity.ts';
import { Chain, Network, NetworkCurrency, Node, ReferenceParked, ReferenceTombstone } from './reference.entity.ts';
import {
  NodeEventSeq,
  ParkedNotification,
  Transaction,
  TransactionEvent,
  TransactionId,
  TransactionLookup,
} from './transactions.entity.ts';
import { Migration, MigrationFile, MigrationJob, MigrationRow } from './user-migrations.entity.ts';
import { User } from './users.entity.ts';
import { WalletRule, WalletRuleVersion } from './wallet-rules.entity.ts';
import { Wallet, WalletNetwork } from './wallets.entity.ts';

/** The entities of all tables of the database. */
export const entities = [
  AccessChange,
  Account,
  AccountBlock,
  AccountChange,
  AccountSuperblock,
  Asset,
  AuditRecord,
  AuditSeal,
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
  WalletRuleVersion,
];

/** The types of all tables for Kysely: column names, and the values that are read and written. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;
