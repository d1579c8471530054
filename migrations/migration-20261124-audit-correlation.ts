import { Migration } from '@mikro-orm/migrations';

/** An index for whoever follows one request: `auditRecords` and `audit list` by correlation id. */
export class Migration20261124AuditCorrelation extends Migration {
  override up(): void {
    this.addSql('create index audit_records_correlation on audit_records (correlation_id)');
  }
}
