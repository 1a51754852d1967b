"""What privacy costs in money: regret against epsilon, pricing and recommending. See README.md."""
