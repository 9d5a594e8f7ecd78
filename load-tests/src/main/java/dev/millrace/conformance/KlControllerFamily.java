package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.kl.CoefficientConfig;

/** {@code kl_controller}: the coefficient after each of a list of updates. */
final class KlControllerFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "kl_controller";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        CoefficientConfig controller = controller(golden.config());
        JsonNode updates = golden.input().path("updates");
        if (!updates.isArray()) {
            throw new MalformedCaseException("input.updates must be a list");
        }
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        ArrayNode values = output.putArray("values");
        double coefficient = controller.initial();
        values.add(JsonNumbers.write(coefficient));
        for (JsonNode update : updates) {
            double measured = JsonNumbers.read(update.path("current_kl"), "current_kl");
            coefficient = updated(
                    controller, coefficient, measured, update.path("n_steps").longValue());
            values.add(JsonNumbers.write(coefficient));
        }
        return output;
    }

    static CoefficientConfig controller(CaseConfig config) {
        config.ignore("target_kl", "horizon");
        String type = config.text("type");
        return switch (type) {
            case "fixed" -> new CoefficientConfig.Fixed(config.number("kl_coef"));
            case "adaptive" ->
                new CoefficientConfig.Adaptive(
                        config.number("kl_coef"), config.number("target_kl"), config.number("horizon"));
            default -> throw new IllegalArgumentException("controller type must be fixed or adaptive: " + type);
        };
    }

    /** The reference multiplies whatever the factor; the library refuses one that is not positive. */
    static double updated(CoefficientConfig controller, double coefficient, double measuredKl, long steps) {
        return controller instanceof CoefficientConfig.Adaptive adaptive
                ? coefficient * adaptive.multiplier(measuredKl, steps)
                : coefficient;
    }
}
