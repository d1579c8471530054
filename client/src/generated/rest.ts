/** Generated from schema/openapi.json by scripts/print-client-types.ts. */

/** An exact number as text, such as "12.50". */
export type Decimal = string;

export type AccountPage = {
  data: Array<{
    /** The UUID. */
    id: string;
    /** The display name. */
    name: string;
    /** The tenant (node) that it belongs to. */
    node_id: string;
    /** Such as `organisation` or `customer-segregated`; more values may be added. */
    type: string;
    /** 1 active, 2 suspended, 3 closed; more values may be added. */
    status: number;
    /** When it was created. */
    created_at: string;
    /** When it was last changed. */
    updated_at: string;
    deleted_at: string | null;
  }>;
  page: number;
  /** The requested limit. */
  per_page: number;
  /** The total number of items over all pages. */
  total: number;
};

export type AllOf = {
  and: Array<RuleLogic>;
};

export type AnyOf = {
  or: Array<RuleLogic>;
};

export type Asset = {
  /** The UUID. */
  id: string;
  /** The display name. */
  name: string;
  /** The token's symbol. */
  symbol: string;
  /** Such as `bond`; more values may be added. */
  type: string;
  /** The tenant (node) that it belongs to. */
  node_id: string;
  /** The network that its contract is on. */
  network_id: string;
  contract_address: string | null;
  /** Such as `draft`; more values may be added. */
  status: string;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
};

export type BulkResult = {
  /** success + skipped + failed. */
  total: number;
  success: number;
  skipped: number;
  failed: number;
  /** In the order of the request. */
  results: Array<{
    email?: string;
    external_id?: string;
    user_id?: string;
    status: "created" | "skipped" | "failed";
    reason?: string;
  }>;
};

export type Condition = {
  /** The field that is compared, such as `target.balance`. */
  field: string;
  /** The comparison operator. Every spelling is stored as its short form. */
  op: "lt" | "<" | "less_than" | "less-than" | "lte" | "<=" | "less_than_or_equal" | "less-than-or-equal" | "less_than_or_equal_to" | "less-than-or-equal-to" | "less_than_or_equals" | "less-than-or-equals" | "gt" | ">" | "greater_than" | "greater-than" | "gte" | ">=" | "greater_than_or_equal" | "greater-than-or-equal" | "greater_than_or_equal_to" | "greater-than-or-equal-to" | "greater_than_or_equals" | "greater-than-or-equals" | "eq" | "=" | "==" | "equal" | "equals" | "equal_to" | "equal-to" | "neq" | "!=" | "<>" | "ne" | "not_equal" | "not-equal" | "not_equals" | "not-equals" | "not_equal_to" | "not-equal-to";
  /** Stored exactly: at most 78 significant digits, and an exponent from -78 to 78. */
  value: Decimal;
  network_currency_id: string;
};

export type GasFees = {
  data: Array<{
    network_id: string;
    chain_id: number | string;
    base_fee: string | null;
    priority_fee: {
      slow: string;
      standard: string;
      fast: string;
    } | null;
    gas_price: string;
    block_number: number | string;
    updated_at: string;
  } | {
    network_id: string;
    error: string;
  }>;
};

export type Health = {
  status: "ok" | "degraded" | "down";
  version: string;
  /** Seconds since the start. */
  uptime: number;
  checks: {
    database: "ok" | "down";
    cache: "ok" | "down";
    bus: "ok" | "down";
    audit: "ok" | "full";
  };
};

export type Introspection = {
  active: boolean;
  scope?: string;
  username?: string;
  token_type?: "Bearer";
  client_id?: string;
  exp?: number;
  iat?: number;
  sub?: string;
  aud?: string;
  iss?: string;
  jti?: string;
  token_use?: "login" | "api" | "forgot_password" | "refresh";
};

export type MigrateUser = {
  /** Trimmed and stored in lower case. */
  wallet_address: string;
  /** Required if external_id is absent or blank. Trimmed and normalised to NFC; unique within the tenant, where letter case and invisible characters do not count. */
  email?: string | null;
  /** Required if email is absent or blank. Unique within the tenant, compared exactly. */
  external_id?: string | null;
  /** Normalised to NFC. */
  name?: string | null;
  /** Normalised to NFC. */
  surname?: string | null;
  /** If true, the user is marked as verified and no KYC token event is published. */
  kyc_sent?: boolean | null;
};

export type MigrateUserRow = {
  wallet_address: string;
  email?: string | null;
  external_id?: string | null;
  name?: string | null;
  surname?: string | null;
  kyc_sent?: boolean | null;
};

export type MigratedUser = {
  id: string;
  external_id: string | null;
  name: string;
  surname: string;
  email: string;
  address: string;
  identity_number: string;
  kyc: {
    is_verified: boolean;
    token_sent: boolean;
    token_sent_at: string;
    token_tx_hash: string | null;
  } | null;
};

export type NotOf = {
  not: RuleLogic;
};

export type Notification = {
  /** The id that the chain processor gave the transaction. */
  id: string;
  /** A code whose meaning depends on the collection of the id. Unknown codes are stored. */
  type: number;
  /** 1 Started, 2 InProgress, 3 Done, 4 Error, 5 PendingReceipt. */
  status: 1 | 2 | 3 | 4 | 5;
  /** Empty until broadcast. */
  transaction_hash?: string | null;
  /** Empty if there is none. */
  contract_address?: string | null;
  /** 0 while pending. */
  gas_used?: Decimal | null;
  /** Set if the status is 4. */
  error?: string | null;
  /** ISO 8601 with any precision and any offset; UTC if there is none. */
  created_at: string;
  /** ISO 8601 with any precision and any offset; UTC if there is none. */
  updated_at: string;
};

export type RuleLogic = Condition | AllOf | AnyOf | NotOf;

export type ServerMetadata = {
  issuer: string;
  token_endpoint: string;
  token_endpoint_auth_methods_supported: Array<string>;
  grant_types_supported: Array<string>;
  response_types_supported: Array<unknown>;
  scopes_supported: Array<"accounts:read" | "wallets:read" | "wallets:write" | "wallet-rules:read" | "wallet-rules:write" | "users:read" | "users:migrate" | "users:erase" | "transactions:read" | "transactions:write" | "tokens:read" | "clients:manage" | "audit:read">;
  revocation_endpoint: string;
  revocation_endpoint_auth_methods_supported: Array<string>;
  introspection_endpoint: string;
  introspection_endpoint_auth_methods_supported: Array<string>;
};

export type TokenResponse = {
  access_token: string;
  refresh_token: string;
  /** The lifetime of the access token in seconds, not a point in time. */
  expires_in: number;
  token_type: "Bearer";
  /** The permissions, separated by spaces. */
  scope: string;
  /** The time of issue, as a Unix timestamp in seconds. */
  created_at: number;
};

export type WalletRule = {
  name: string;
  type: "auto_transfer" | "permissionless_transfer_limit";
  network_id: string;
  network_currency_id: string;
  priority?: number | null;
  /** Required if type is auto_transfer. */
  auto_transfer_rule?: {
    type: "auto" | "auto_with_approve";
    rule_logic: RuleLogic;
    amount: Decimal;
    target_wallet_id: string;
  } | null;
  /** The approvals that are required; each member is optional. */
  sign_and_approve_rule?: {
    mandatory_user_id?: string | null;
    min_priority?: number | null;
    max_priority?: number | null;
    min_user_count?: number | null;
  } | null;
  /** Required if type is permissionless_transfer_limit. */
  permissionless_transfer_limit_rule?: {
    max_amount: Decimal;
    time_period: "hour" | "day" | "week" | "month" | "year";
    time_period_value: number;
  } | null;
};

/** The members whose values are decimals. */
export const DECIMAL_MEMBERS: ReadonlySet<string> = new Set(["amount","gas_used","max_amount","value"]);
