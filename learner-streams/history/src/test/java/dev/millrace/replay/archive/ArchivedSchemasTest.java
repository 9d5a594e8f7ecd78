package dev.millrace.replay.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ArchivedSchemasTest {
    private final ArchivedSchemas schemas = new ArchivedSchemas(Map.of(7, PublishedSchema.text(Outcome.SCHEMA$)));

    @Test
    void shouldKnowASchemaOfTheArchiveByTheIdOfItsRecords() {
        assertThat(schemas.idOf("outcomes-value", Outcome.SCHEMA$)).isEqualTo(7);
        assertThat(schemas.byId(7).getFullName()).isEqualTo("dev.millrace.schemas.Outcome");
    }

    @Test
    void shouldGiveASchemaThatTheArchiveHasNotAnIdThatIsOnNoLog() {
        int id = schemas.idOf("rewards-value", Reward.SCHEMA$);
        assertThat(id).isEqualTo(-1);
        assertThat(schemas.idOf("rewards-value", Reward.SCHEMA$)).isEqualTo(id);
        assertThat(schemas.byId(id)).isEqualTo(Reward.SCHEMA$);
    }

    @Test
    void shouldRefuseAnIdThatNobodyHas() {
        assertThatThrownBy(() -> schemas.byId(8)).isInstanceOf(UnknownSchemaException.class);
    }
}
