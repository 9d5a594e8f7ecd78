package dev.millrace.log;

import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Which settings of Kafka's clients, and of what plugs into them, hold secrets.
 *
 * <p>Kafka says it of its own settings by their type. Of others the name decides, rather once too often than once too seldom.
 */
final class SecretNames {
    private static final Map<String, Boolean> OF_KAFKA = Stream.of(
                    ConsumerConfig.configDef(), ProducerConfig.configDef(), AdminClientConfig.configDef())
            .flatMap(definition -> definition.configKeys().values().stream())
            .collect(Collectors.toUnmodifiableMap(
                    key -> key.name, key -> key.type == ConfigDef.Type.PASSWORD, (one, other) -> one || other));

    private static final Pattern SUSPECT = Pattern.compile(
            "password|passwd|passphrase|secret|credential|token|api[._-]?key|private[._-]?key|access[._-]?key"
                    + "|user[._-]?info|authorization",
            Pattern.CASE_INSENSITIVE);

    private SecretNames() {}

    /** @param name as it is configured, which may begin with a kind of client: {@code producer.ssl.key.password} */
    static boolean holdSecret(String name) {
        for (String bare = name; ; bare = bare.substring(bare.indexOf('.') + 1)) {
            Boolean secret = OF_KAFKA.get(bare);
            if (secret != null) {
                return secret;
            }
            if (bare.indexOf('.') < 0) {
                return SUSPECT.matcher(name).find();
            }
        }
    }

    /** Whether it is a JAAS line, of which parts may be shown. */
    static boolean isJaas(String name) {
        return name.endsWith("sasl.jaas.config");
    }

    /** Whether it is {@code user:password}, of which the user may be shown. */
    static boolean isUserInfo(String name) {
        return name.endsWith("user.info");
    }
}
