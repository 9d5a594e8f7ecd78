package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.advantage.Credit;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.algorithm.CriticConfig;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class CriticPageTest {
    private static final String PAGE = "how-to/critic.md";

    @Test
    void shouldBindTheExample() throws IOException {
        MillraceConfig config =
                new ConfigLayers().yaml(PageCode.block(PAGE, "yaml"), PAGE).resolve();

        assertThat(config.algorithm().advantage()).isEqualTo(new Gae(1, 0.95, Credit.OUTCOME));
        assertThat(config.algorithm().critic()).isEqualTo(new CriticConfig.ValueHead(0.5, 0.2));
        assertThat(config.shape().valueHead()).isTrue();
        config.requireTrainable();
    }
}
