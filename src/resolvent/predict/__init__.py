"""Setting -> Prediction: the limits of attention and linear regression, with the solver's certificate."""

from resolvent.callable_module import call_as
from resolvent.predict.prediction import ConvergenceError, Prediction, predict

__all__ = ["ConvergenceError", "Prediction", "predict"]

call_as(predict, __name__)
