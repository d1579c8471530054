import type { InferKyselyDB } from '@mikro-orm/sql';
import { Account } from './accounts/account.entity.ts';
import { Asset } from './assets/asset.entity.ts';
import { AuditRecord } from './audit/audit-record.entity.ts';
import { Client, ClientQuota, ClientSecret } from './clients/client.entity.ts';
import { BusMessage, BusOffset } from './events/bus.entity.ts';
import { AccessChange, RevokedToken, SpentRefreshToken } from './oauth/revocation.entity.ts';
import { Session } from './oauth/session.entity.ts';
import { Chain, Network, NetworkCurrency, Node } from './reference/reference.entity.ts';
import { LoginFailure, Supervisor } from './supervisors/supervisor.entity.ts';
import {
  NodeEventSeq,
  ParkedNotification,
  Transaction,
  TransactionEvent,
  TransactionId,
} from './transactions/transaction.entity.ts';
import { User } from './users/user.entity.ts';
import { Wallet, WalletNetwork } from './wallets/wallet.entity.ts';

/** Every table of the database. */
export const entities = [
  AccessChange,
  Account,
  Asset,
  AuditRecord,
  BusMessage,
  BusOffset,
  Chain,
  Client,
  ClientQuota,
  ClientSecret,
  LoginFailure,
  Network,
  NetworkCurrency,
  Node,
  NodeEventSeq,
  ParkedNotification,
  RevokedToken,
  Session,
  SpentRefreshToken,
  Supervisor,
  Transaction,
  TransactionEvent,
  TransactionId,
  User,
  Wallet,
  WalletNetwork,
];

/** The tables as Kysely sees them: column names and the plain values that rows are read and written in. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;
