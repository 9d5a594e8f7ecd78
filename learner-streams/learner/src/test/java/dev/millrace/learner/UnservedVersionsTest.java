package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.VersionRetention.UnservedVersions;
import dev.millrace.schemas.ServerRole;
import java.util.List;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;

/** Version v is published at 1000 v milliseconds; the watch began at 0, and the limit is 5 s. */
class UnservedVersionsTest {
    private static final LongUnaryOperator PUBLISHED = version -> 1000 * version;
    private final UnservedVersions unserved = new UnservedVersions(5_000, 0);

    @Test
    void shouldFindNothingWhileEverybodyFollows() {
        assertThat(unserved.find(10, List.of(generator("g", 10), scorer(10)), PUBLISHED, 60_000))
                .isEmpty();
        assertThat(unserved.find(10, List.of(generator("g", 5), scorer(10)), PUBLISHED, 11_000))
                .as("version 6 has been there for exactly the limit")
                .isEmpty();
    }

    @Test
    void shouldNameTheServerAndCountFromTheFirstVersionItDoesNotServe() {
        List<UnservedVersions.Unserved> found =
                unserved.find(10, List.of(generator("g1", 10), generator("g2", 5), scorer(9)), PUBLISHED, 12_500);

        assertThat(found).singleElement().satisfies(alarm -> {
            assertThat(alarm.who()).isEqualTo("generator g2");
            assertThat(alarm.version()).isEqualTo(6);
            assertThat(alarm.ageMs()).isEqualTo(6_500);
            assertThat(alarm.detail())
                    .isEqualTo("generator g2 serves version 5, but version 6 could be served for 6 s; the"
                            + " newest is 10, and its last heartbeat was 11 s ago");
        });
    }

    @Test
    void shouldMissARoleThatNobodyHas() {
        assertThat(unserved.find(0, List.of(generator("g", 0)), PUBLISHED, 6_000))
                .singleElement()
                .satisfies(alarm -> {
                    assertThat(alarm.who()).isEqualTo("no scorer");
                    assertThat(alarm.detail())
                            .isEqualTo("no scorer serves any version; the newest is 0, and none did for 6 s");
                });
        assertThat(unserved.find(0, List.of(), PUBLISHED, 4_000)).isEmpty();
    }

    @Test
    void shouldMissARoleSinceItsLastServerLeft() {
        assertThat(unserved.find(10, List.of(generator("g", 10), scorer(10)), PUBLISHED, 60_000))
                .isEmpty();
        assertThat(unserved.find(10, List.of(generator("g", 10)), PUBLISHED, 65_000))
                .isEmpty();
        assertThat(unserved.find(10, List.of(generator("g", 10)), PUBLISHED, 66_000))
                .extracting(UnservedVersions.Unserved::detail)
                .containsExactly("no scorer serves any version; the newest is 10, and none did for 6 s");
    }

    @Test
    void shouldNotCountTheTimeBeforeAnybodyWatched() {
        UnservedVersions resumed = new UnservedVersions(5_000, 50_000);
        assertThat(resumed.find(10, List.of(generator("g", 3)), PUBLISHED, 54_000))
                .isEmpty();
        assertThat(resumed.find(10, List.of(generator("g", 3), scorer(10)), PUBLISHED, 55_500))
                .extracting(UnservedVersions.Unserved::who)
                .containsExactly("generator g");
    }

    private static Server generator(String id, long version) {
        return new Server(id, ServerRole.GENERATOR, version, version, 1_000);
    }

    private static Server scorer(long version) {
        return new Server("s", ServerRole.SCORER, version, version, 1_000);
    }
}
