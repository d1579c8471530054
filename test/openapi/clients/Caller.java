import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.JSON;
import org.openapitools.client.api.AccountsApi;
import org.openapitools.client.api.TokensApi;
import org.openapitools.client.api.UsersApi;
import org.openapitools.client.api.WalletsApi;
import org.openapitools.client.model.AllOf;
import org.openapitools.client.model.ClientCredentialsGrant;
import org.openapitools.client.model.Condition;
import org.openapitools.client.model.MigrateUser;
import org.openapitools.client.model.NotOf;
import org.openapitools.client.model.RuleLogic;
import org.openapitools.client.model.TokenRequest;
import org.openapitools.client.model.WalletRule;
import org.openapitools.client.model.WalletRuleAutoTransferRule;

/** Calls the service with the client that openapi-generator makes, and prints what it was given. */
public final class Caller {
    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(variable("BASE_URL"));
        var grant = new ClientCredentialsGrant()
            .grantType(ClientCredentialsGrant.GrantTypeEnum.CLIENT_CREDENTIALS)
            .clientId(id("CLIENT_ID"))
            .clientSecret(variable("CLIENT_SECRET"));
        var token = new TokensApi(client).issueToken(new TokenRequest(grant), null, null);
        client.setBearerToken(token.getAccessToken());

        var page = new AccountsApi(client).listAccounts(1, 2, null, null, null);
        var rule = new WalletRule()
            .name("Made in Java")
            .type(WalletRule.TypeEnum.AUTO_TRANSFER)
            .networkId(id("NETWORK"))
            .networkCurrencyId(id("CURRENCY"))
            .autoTransferRule(new WalletRuleAutoTransferRule()
                .type(WalletRuleAutoTransferRule.TypeEnum.AUTO)
                .amount(new BigDecimal("250.5"))
                .targetWalletId(id("TARGET_WALLET"))
                .ruleLogic(new RuleLogic(new AllOf().and(List.of(
                    new RuleLogic(condition(Condition.OpEnum.LT, 100)),
                    new RuleLogic(new NotOf().not(new RuleLogic(condition(Condition.OpEnum.LT, 0)))))))));
        var created = new WalletsApi(client).createWalletRuleWithHttpInfo(id("WALLET"), rule, null, null, null);
        var user = new UsersApi(client).migrateUser(
            new MigrateUser().walletAddress(variable("ADDRESS")).email(variable("EMAIL")), null, null, null);

        System.out.println(JSON.serialize(Map.of(
            "scope", token.getScope(),
            "total", page.getTotal(),
            "accounts", page.getData().size(),
            "location", created.getHeaders().get("location").get(0),
            "email", user.getEmail())));
        // The client's threads would keep the process for a minute.
        System.exit(0);
    }

    private static Condition condition(Condition.OpEnum op, int value) {
        return new Condition()
            .field("target.balance")
            .op(op)
            .value(BigDecimal.valueOf(value))
            .networkCurrencyId(id("CURRENCY"));
    }

    private static UUID id(String name) {
        return UUID.fromString(variable(name));
    }

    private static String variable(String name) {
        return System.getenv(name);
    }
}
