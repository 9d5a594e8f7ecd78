package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.TestPoints.Gate;
import dev.millrace.runtime.config.TestPoints.Narrow;
import dev.millrace.runtime.config.TestPoints.Nested;
import dev.millrace.runtime.config.TestPoints.Wide;
import dev.millrace.topology.CanonicalValues;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ChoiceTest {
    public record Wall(Gate gate, List<Gate> gates) {}

    public record House(String variant, int rooms, List<Gate> gates) {
        public static House variant(String name) {
            return switch (name) {
                case "hut" -> new House("hut", 1, List.of());
                case "villa" -> new House("villa", 12, List.of(new Wide(), new Narrow(1)));
                default -> throw new IllegalArgumentException("variant must be hut or villa: '" + name + "'");
            };
        }
    }

    public record Street(House house) {}

    private static final Wall WALL = new Wall(new Wide(), List.of(new Narrow(3), new Wide()));

    private static ObjectNode tree(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return tree;
    }

    private static Wall wall(String... settings) {
        return ConfigBinder.bind(WALL, tree(settings));
    }

    private static House house(String... settings) {
        return ConfigBinder.bind(new Street(House.variant("hut")), tree(settings))
                .house();
    }

    @Test
    void shouldTakeAKindThatCameThroughAnExtensionPointByItsNameThere() {
        assertThat(wall("gate=slit").gate()).isEqualTo(new Narrow(0.5));
        assertThat(wall("gate.kind=chink", "gate.width=2").gate()).isEqualTo(new Narrow(2));
        assertThat(wall("gate=slit", "gate.width=4").gate()).isEqualTo(new Narrow(4));
        assertThat(wall("gate=nested", "gate.inner.width=7", "gate.other=slit").gate())
                .isEqualTo(new Nested(new Narrow(7), new Narrow(0.5)));
        assertThat(ConfigBinder.unbind(wall("gate=chink")).toString())
                .isEqualTo("{'gate':{'kind':'slit','width':0.5},'gates':[{'kind':'slit','width':3.0},{'kind':'wide'}]}"
                        .replace('\'', '"'));
    }

    @Test
    void shouldTakeAListOfKinds() {
        assertThat(wall("gates=[wide, {kind: slit, width: 0.1}]").gates())
                .isEqualTo(List.of(new Wide(), new Narrow(0.1)));
        assertThat(wall("gates=[]").gates()).isEmpty();
        assertThat(wall().gates()).isEqualTo(WALL.gates());
        assertThat(ConfigBinder.keys(WALL)).containsExactly("gate.kind", "gates");
    }

    @Test
    void shouldTakeSingleElementsOverTheListThatIsThere() {
        assertThat(wall("gates[0].width=0.25").gates()).isEqualTo(List.of(new Narrow(0.25), new Wide()));
        assertThat(wall("gates.0.width=0.25").gates()).isEqualTo(List.of(new Narrow(0.25), new Wide()));
        assertThat(wall("gates[1]=slit").gates()).isEqualTo(List.of(new Narrow(3), new Narrow(0.5)));
        assertThat(wall("gates[2].kind=slit").gates()).hasSize(3);
        assertThat(wall("gates=[slit]", "gates[0].width=9", "gates[1]=wide").gates())
                .isEqualTo(List.of(new Narrow(9), new Wide()));
    }

    @Test
    void shouldPutElementsOfALaterLayerOverTheListOfAnEarlierOne() {
        ObjectNode tree = ConfigTree.parse("gates: [slit, wide, {kind: slit, width: 2}]", "the first");
        ConfigTree.merge(tree, ConfigTree.parse("gates: {0: {width: 4}, 2: wide}", "the second"));
        assertThat(ConfigBinder.bind(WALL, tree).gates()).isEqualTo(List.of(new Narrow(4), new Wide(), new Wide()));
    }

    @Test
    void shouldComeBackFromItsOwnTree() {
        Wall wall = wall("gate=nested", "gates=[slit, nested]");
        assertThat(ConfigBinder.bind(WALL, ConfigTree.parse(ConfigTree.write(ConfigBinder.unbind(wall)), "its own")))
                .isEqualTo(wall);
    }

    @Test
    void shouldRefuseElementsInSentencesThatNameThem() {
        assertThatThrownBy(() -> wall("gates=[slid]"))
                .hasMessage(
                        "gates[0] must be one of slit, wide, nested, or a kind of a plug-in (--plugin-path): 'slid'; did you mean slit?");
        assertThatThrownBy(() -> wall("gates=[wide, {kind: slit, width: -1}]"))
                .hasMessage("gates[1].width must be above 0: -1.0");
        assertThatThrownBy(() -> wall("gates=[{width: 1}]"))
                .hasMessage(
                        "gates[0] needs the key kind, one of slit, wide, nested, or a kind of a plug-in (--plugin-path): {\"width\":1}");
        assertThatThrownBy(() -> wall("gates[1].width=1"))
                .hasMessage("unknown key gates[1].width for gates[1].kind=wide; it belongs to slit");
        assertThatThrownBy(() -> wall("gates[5].width=1"))
                .hasMessage("gates has 2 elements, so there is no gates[5]; write the whole list");
        assertThatThrownBy(() -> wall("gates=wide"))
                .hasMessage("gates must be a list of kinds, such as [slit, wide, nested], or [] for none: \"wide\"");
    }

    @Test
    void shouldTakeAVariantByNameAndPutKeysOverIt() {
        assertThat(house()).isEqualTo(House.variant("hut"));
        assertThat(house("house=villa")).isEqualTo(House.variant("villa"));
        assertThat(house("house.variant=villa", "house.rooms=9").rooms()).isEqualTo(9);
        assertThat(house("house=villa", "house.rooms=9").gates()).hasSize(2);
        assertThat(house("house=villa", "house.gates[1].width=8").gates())
                .isEqualTo(List.of(new Wide(), new Narrow(8)));
        assertThat(house("house.rooms=3")).isEqualTo(new House("hut", 3, List.of()));
        assertThat(ConfigBinder.bind(House.variant("hut"), ConfigTree.parse("variant: villa", "part of a file"))
                        .rooms())
                .isEqualTo(12);
        assertThatThrownBy(() -> house("house=vila")).hasMessage("house.variant must be hut or villa: 'vila'");
        assertThatThrownBy(() -> house("house=villa", "house..rooms=1"))
                .hasMessage("--set expects key=value, and a part of this key is empty: 'house..rooms'");
    }

    @Test
    void shouldFingerprintTheNameUnderWhichAKindCameIn() {
        assertThat(CanonicalValues.of("w", WALL))
                .isEqualTo(Map.of(
                        "w.gate.kind", "wide",
                        "w.gates[0].kind", "slit",
                        "w.gates[0].width", "3",
                        "w.gates[1].kind", "wide"));
        assertThat(CanonicalValues.of("w", wall("gates=[]"))).containsEntry("w.gates", "[]");
    }
}
